// SPDX-License-Identifier: Apache-2.0
// AdjustBrightness: all values times a factor.
#include "headrace/base/registry.h"
#include "headrace/ops/color/color_steps.h"

namespace headrace {
namespace {

const OpRecord kAdjustBrightness{
    .name = "AdjustBrightness",
    .doc =
        "Multiplies an image's values with a factor.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32; shape and dtype stay, and masks "
        "are left as they are. torchvision and Pillow do the same here.",
    .page = {.section = "Colors", .step = "T.AdjustBrightness(1.5)"},
    .params = {{.name = "brightness_factor",
                .type = ParamType::kFloat,
                .doc = "0 is black, 1 changes nothing, 2 is twice as bright.",
                .required = true,
                .minimum = 0}},
    .oracle = "torchvision v2's adjust_brightness on tensors and on Pillow's images, bit for bit",
    .example = {{"brightness_factor", 1.3}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<FixedPixelOp>("AdjustBrightness",
                                            brightness_step(arguments.number("brightness_factor")));
    }};
const Register<OpRecord> registered_adjust_brightness(kAdjustBrightness);

}  // namespace
}  // namespace headrace
