// SPDX-License-Identifier: Apache-2.0
// RandomAdjustSharpness: blends a picture with its blur, or extrapolates away from it, with
// probability p.
#include <memory>

#include "headrace/base/registry.h"
#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

class RandomAdjustSharpness final : public RandomPixelOp {
 public:
  RandomAdjustSharpness(double factor, double p, Arithmetic arithmetic)
      : RandomPixelOp("RandomAdjustSharpness", p), factor_(factor), arithmetic_(arithmetic) {}
  bool measures() const override { return true; }

 private:
  void plan_image(FieldState& image) const override {
    plan_pixels(arithmetic_ == Arithmetic::kTorch, image);
  }
  Result<void> change(OpContext& context, int field) const override {
    return do_pass(context, field, sharpness_pass(factor_, arithmetic_));
  }
  const double factor_;
  const Arithmetic arithmetic_;
};

const OpRecord kRandomAdjustSharpness{
    .name = "RandomAdjustSharpness",
    .doc =
        "Adjusts sharpness, with probability p: blends an image with its 3 x 3 blur, or "
        "extrapolates away from it.\n\n"
        "Images of one or three channels, (C, H, W), uint8, and float32 in torch's arithmetic; "
        "shape and dtype are unchanged, and so are masks. The outermost pixels are unchanged, "
        "and so is an image that has no others. Earlier transforms are rendered first, which "
        "adds a pass over the image.",
    .page = {.section = "Sharpness, blur and noise", .step = "T.RandomAdjustSharpness(5.0, p=1.0)"},
    .params = {{.name = "sharpness_factor",
                .type = ParamType::kFloat,
                .doc = "0 is the blurred image, 1 changes nothing, 2 sharpens as much as 0 blurs.",
                .required = true,
                .minimum = 0},
               probability_param("Probability of sharpening a record's images."),
               arithmetic_param()},
    .oracle =
        "torchvision v2's adjust_sharpness on tensors, or on Pillow images, bit for bit; float32 "
        "to "
        "1e-6 of the largest value times the factor (torch sums in a different order)",
    .example = {{"sharpness_factor", 2.0}, {"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomAdjustSharpness>(
          arguments.number("sharpness_factor"), arguments.number("p"), arithmetic_from(arguments));
    }};
const Register<OpRecord> registered_random_adjust_sharpness(kRandomAdjustSharpness);

}  // namespace
}  // namespace headrace
