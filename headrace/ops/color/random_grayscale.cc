// SPDX-License-Identifier: Apache-2.0
// RandomGrayscale: converts to gray with probability p.
#include "headrace/base/registry.h"
#include "headrace/ops/color/color_steps.h"

namespace headrace {
namespace {

class RandomGrayscale final : public RandomPixelOp {
 public:
  RandomGrayscale(double p, Arithmetic arithmetic)
      : RandomPixelOp("RandomGrayscale", p), arithmetic_(arithmetic) {}

 private:
  void plan_image(FieldState& image) const override {
    plan_step(gray_step(image.shape[0] == 1 ? 1 : 3, arithmetic_), image);
  }
  Result<void> change(OpContext& context, int field) const override {
    const int channels = context.record.fields[field].picture.channels();
    return compute(context, field, gray_step(channels, arithmetic_));
  }
  const Arithmetic arithmetic_;
};

const OpRecord kRandomGrayscale{
    .name = "RandomGrayscale",
    .doc =
        "Converts images to grayscale, with probability p; the number of channels is "
        "unchanged.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32; shape and dtype are "
        "unchanged, and so are masks.",
    .page = {.section = "Color transforms", .step = "T.RandomGrayscale(1.0)"},
    .params = {probability_param("Probability of converting a record's images to gray.", 0.1),
               arithmetic_param()},
    .oracle = "torchvision v2's rgb_to_grayscale on tensors, or on Pillow images, bit for bit",
    .example = {{"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomGrayscale>(arguments.number("p"), arithmetic_from(arguments));
    }};
const Register<OpRecord> registered_random_grayscale(kRandomGrayscale);

}  // namespace
}  // namespace headrace
