// SPDX-License-Identifier: Apache-2.0
// AdjustSaturation: blends colors with their gray, or extrapolates away from it.
#include "headrace/base/registry.h"
#include "headrace/ops/color/color_steps.h"

namespace headrace {
namespace {

const OpRecord kAdjustSaturation{
    .name = "AdjustSaturation",
    .doc =
        "Adjusts saturation: blends an image with its grayscale version, or extrapolates away "
        "from it.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32; shape and dtype are "
        "unchanged, and so are masks. A gray image keeps its values.",
    .page = {.section = "Color transforms", .step = "T.AdjustSaturation(2.0)"},
    .params = {{.name = "saturation_factor",
                .type = ParamType::kFloat,
                .doc = "0 is gray, 1 changes nothing, 2 is twice the color.",
                .required = true,
                .minimum = 0},
               arithmetic_param()},
    .oracle = "torchvision v2's adjust_saturation on tensors, or on Pillow images, bit for bit",
    .example = {{"saturation_factor", 1.7}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<FixedPixelOp>(
          "AdjustSaturation",
          saturation_step(arguments.number("saturation_factor"), arithmetic_from(arguments)));
    }};
const Register<OpRecord> registered_adjust_saturation(kAdjustSaturation);

}  // namespace
}  // namespace headrace
