// SPDX-License-Identifier: Apache-2.0
// AdjustContrast: blends values with the mean gray of the picture, or extrapolates away from it.
#include "headrace/base/registry.h"
#include "headrace/ops/color/color_steps.h"

namespace headrace {
namespace {

class AdjustContrast final : public PixelOp {
 public:
  AdjustContrast(double factor, Arithmetic arithmetic)
      : PixelOp("AdjustContrast"), factor_(factor), arithmetic_(arithmetic) {}

  Result<void> apply(OpContext& context) const override {
    for (int field : context.fields) {
      Result<void> done = compute(context, field, contrast_pass(factor_, arithmetic_));
      if (!done) return done;
    }
    return {};
  }
  bool measures() const override { return true; }
  DevicePart device_part() const override { return DevicePart::kTable; }

 private:
  void plan_image(FieldState& image) const override {
    plan_step(any_color_step(arithmetic_), image);
  }
  const double factor_;
  const Arithmetic arithmetic_;
};

const OpRecord kAdjustContrast{
    .name = "AdjustContrast",
    .doc =
        "Adjusts contrast: blends an image with its mean gray, or extrapolates away from it.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32; shape and dtype are "
        "unchanged, and so are masks. It needs the mean of the whole image, so earlier transforms "
        "are executed first, which adds a pass. Above 65,793 pixels torch sums the mean in a "
        "different order, and values may differ by 1.",
    .page = {.section = "Color transforms", .step = "T.AdjustContrast(1.8)"},
    .params = {{.name = "contrast_factor",
                .type = ParamType::kFloat,
                .doc = "0 is uniform gray, 1 changes nothing, 2 is twice the contrast.",
                .required = true,
                .minimum = 0},
               arithmetic_param()},
    .oracle =
        "torchvision v2's adjust_contrast on tensors of up to 65,793 pixels, or on Pillow's "
        "images, bit for bit; float32 within 1e-6, since torch sums its mean in a different order",
    .example = {{"contrast_factor", 0.6}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<AdjustContrast>(arguments.number("contrast_factor"),
                                              arithmetic_from(arguments));
    }};
const Register<OpRecord> registered_adjust_contrast(kAdjustContrast);

}  // namespace
}  // namespace headrace
