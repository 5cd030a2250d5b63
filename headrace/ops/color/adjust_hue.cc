// SPDX-License-Identifier: Apache-2.0
// AdjustHue: rotates hues around the color circle.
#include "headrace/base/registry.h"
#include "headrace/ops/color/color_steps.h"

namespace headrace {
namespace {

const OpRecord kAdjustHue{
    .name = "AdjustHue",
    .doc =
        "Rotates an image's hues around the color circle.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32; shape and dtype are "
        "unchanged, and so are masks. A gray image keeps its values. torch computes in float32, "
        "Pillow in steps of 1/255: values differ by up to 13.",
    .page = {.section = "Color transforms", .step = "T.AdjustHue(0.2)"},
    .params = {{.name = "hue_factor",
                .type = ParamType::kFloat,
                .doc =
                    "A fraction of the circle: 0 changes nothing, -0.5 and 0.5 give the opposite "
                    "hue.",
                .required = true,
                .minimum = -0.5,
                .maximum = 0.5},
               arithmetic_param()},
    .oracle = "torchvision v2's adjust_hue on tensors, or on Pillow images, bit for bit",
    .example = {{"hue_factor", 0.2}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<FixedPixelOp>(
          "AdjustHue", hue_step(arguments.number("hue_factor"), arithmetic_from(arguments)));
    }};
const Register<OpRecord> registered_adjust_hue(kAdjustHue);

}  // namespace
}  // namespace headrace
