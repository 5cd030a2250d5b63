// SPDX-License-Identifier: Apache-2.0
// Grayscale: converts images to gray.
#include "headrace/base/registry.h"
#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

std::unique_ptr<Op> make_grayscale(const Arguments& arguments) {
  const int64_t channels = arguments.integer("num_output_channels");
  if (channels == 2)
    raise_invalid_argument("Grayscale", "num_output_channels must be 1 or 3 (got 2)");
  return std::make_unique<FixedPixelOp>(
      "Grayscale", gray_step(static_cast<int>(channels), arithmetic_from(arguments)));
}

const OpRecord kGrayscale{
    .name = "Grayscale",
    .doc =
        "Converts images to grayscale.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32: they get "
        "num_output_channels equal channels, and keep their dtype. Masks are unchanged. "
        "torchvision and Pillow round differently: half of all colors differ by 1. Decoders always "
        "convert to grayscale as Pillow does.",
    .page = {.section = "Color transforms", .step = "T.Grayscale(3)"},
    .params = {{.name = "num_output_channels",
                .type = ParamType::kInt,
                .doc = "Number of channels: 1, or 3 for models that need three.",
                .fallback = int64_t{1},
                .minimum = 1,
                .maximum = 3},
               arithmetic_param()},
    .oracle =
        "torchvision v2's rgb_to_grayscale on tensors of the same dtype, or Pillow's "
        "convert(\"L\"), bit for bit",
    .make = make_grayscale};
const Register<OpRecord> registered_grayscale(kGrayscale);

}  // namespace
}  // namespace headrace
