// SPDX-License-Identifier: Apache-2.0
// RandomAutocontrast: stretches each channel's values to 0 to 255, with probability p.
#include "headrace/base/registry.h"
#include "headrace/ops/color/color_steps.h"

namespace headrace {
namespace {

class RandomAutocontrast final : public RandomPixelOp {
 public:
  RandomAutocontrast(double p, Arithmetic arithmetic)
      : RandomPixelOp("RandomAutocontrast", p), arithmetic_(arithmetic) {}
  bool measures() const override { return true; }
  DevicePart device_part() const override { return DevicePart::kTable; }

 private:
  void plan_image(FieldState& image) const override {
    plan_step(any_color_step(arithmetic_), image);
  }
  Result<void> change(OpContext& context, int field) const override {
    return compute(context, field, autocontrast_pass(arithmetic_));
  }
  const Arithmetic arithmetic_;
};

const OpRecord kRandomAutocontrast{
    .name = "RandomAutocontrast",
    .doc =
        "Stretches each channel to the full range, 0 to 255, with probability p.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32; shape and dtype are "
        "unchanged, and so are masks. It needs statistics of the whole image, so earlier "
        "transforms are executed first, which adds a pass.",
    .page = {.section = "Color transforms", .step = "T.RandomAutocontrast(1.0)"},
    .params = {probability_param("Probability of stretching a record's images."),
               arithmetic_param()},
    .oracle = "torchvision v2's autocontrast on tensors, or on Pillow images, bit for bit",
    .example = {{"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomAutocontrast>(arguments.number("p"),
                                                  arithmetic_from(arguments));
    }};
const Register<OpRecord> registered_random_autocontrast(kRandomAutocontrast);

}  // namespace
}  // namespace headrace
