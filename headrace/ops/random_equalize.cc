// SPDX-License-Identifier: Apache-2.0
// RandomEqualize: each channel's values are spread evenly, with probability p.
#include "headrace/base/registry.h"
#include "headrace/ops/tone_steps.h"

namespace headrace {
namespace {

class RandomEqualize final : public RandomPixelOp {
 public:
  explicit RandomEqualize(double p) : RandomPixelOp("RandomEqualize", p) {}
  bool measures() const override { return true; }

 private:
  void plan_image(FieldState& image) const override { plan_step(table_step({}), image); }
  Result<void> change(OpContext& context, int field) const override {
    const auto pixels = pixels_now(context, field);
    if (!pixels) return pixels.error();
    return compute(context, field, equalize_step(**pixels));
  }
};

const OpRecord kRandomEqualize{
    .name = "RandomEqualize",
    .doc =
        "Spreads the values of each channel evenly over 0 to 255, with probability p.\n\n"
        "Images of one or three channels, (C, H, W), uint8; shape and dtype stay, and masks "
        "are left as they are. The picture is measured first, so what stands before is "
        "computed before it: a second pass.",
    .params = {probability_param("How probable it is that a record's images are equalized.")},
    .oracle = "torchvision v2's equalize, and Pillow's ImageOps.equalize, bit for bit",
    .example = {{"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomEqualize>(arguments.number("p"));
    }};
const Register<OpRecord> registered_random_equalize(kRandomEqualize);

}  // namespace
}  // namespace headrace
