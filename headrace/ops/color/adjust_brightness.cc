// SPDX-License-Identifier: Apache-2.0
// AdjustBrightness: multiplies all values by a factor.
#include "headrace/base/registry.h"
#include "headrace/ops/color/color_steps.h"

namespace headrace {
namespace {

const OpRecord kAdjustBrightness{
    .name = "AdjustBrightness",
    .doc =
        "Multiplies an image's values by a factor.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32; shape and dtype are "
        "unchanged, and so are masks. torchvision and Pillow agree here.",
    .page = {.section = "Color transforms", .step = "T.AdjustBrightness(1.5)"},
    .params = {{.name = "brightness_factor",
                .type = ParamType::kFloat,
                .doc = "0 is black, 1 changes nothing, 2 is twice as bright.",
                .required = true,
                .minimum = 0}},
    .oracle = "torchvision v2's adjust_brightness on tensors and on Pillow images, bit for bit",
    .example = {{"brightness_factor", 1.3}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<FixedPixelOp>("AdjustBrightness",
                                            brightness_step(arguments.number("brightness_factor")));
    }};
const Register<OpRecord> registered_adjust_brightness(kAdjustBrightness);

}  // namespace
}  // namespace headrace
