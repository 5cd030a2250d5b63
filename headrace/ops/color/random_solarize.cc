// SPDX-License-Identifier: Apache-2.0
// RandomSolarize: inverts values at or above a threshold, with probability p.
#include "headrace/base/registry.h"
#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

class RandomSolarize final : public RandomPixelOp {
 public:
  RandomSolarize(double p, double threshold)
      : RandomPixelOp("RandomSolarize", p),
        threshold_(threshold),
        step_(solarize_step(threshold, Arithmetic::kTorch)) {}
  DevicePart device_part() const override { return DevicePart::kTable; }

 private:
  void plan_image(FieldState& image) const override {
    plan_step(step_, image);
    if (image.dtype == DType::kUInt8 || threshold_ <= 1) return;
    raise_invalid_argument(name(),
                           "threshold is " + text_of(ParamValue(threshold_)) +
                               ", but white is 1 in \"" + image.name + "\", which is float32",
                           "divide it by 255, or put the transform before ToDtype");
  }
  Result<void> change(OpContext& context, int field) const override {
    return compute(context, field, step_);
  }
  const double threshold_;
  const PixelStep step_;
};

const OpRecord kRandomSolarize{
    .name = "RandomSolarize",
    .doc =
        "Inverts the values at or above a threshold, with probability p.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32; shape and dtype are "
        "unchanged, and so are masks.",
    .page = {.section = "Color transforms", .step = "T.RandomSolarize(128, p=1.0)"},
    .params = {{.name = "threshold",
                .type = ParamType::kFloat,
                .doc = "Values at or above this are inverted; for float32, white is 1.",
                .required = true,
                .minimum = 0,
                .maximum = 255},
               probability_param("Probability of solarizing a record's images.")},
    .oracle = "torchvision v2's solarize, bit for bit",
    .example = {{"threshold", 128.0}, {"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomSolarize>(arguments.number("p"), arguments.number("threshold"));
    }};
const Register<OpRecord> registered_random_solarize(kRandomSolarize);

}  // namespace
}  // namespace headrace
