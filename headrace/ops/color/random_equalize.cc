// SPDX-License-Identifier: Apache-2.0
// RandomEqualize: equalizes each channel's histogram, with probability p.
#include <memory>

#include "headrace/base/registry.h"
#include "headrace/ops/color/color_steps.h"

namespace headrace {
namespace {

class RandomEqualize final : public RandomPixelOp {
 public:
  explicit RandomEqualize(double p) : RandomPixelOp("RandomEqualize", p) {}
  bool measures() const override { return true; }
  DevicePart device_part() const override { return DevicePart::kTable; }
  size_t scratch_per_pixel() const override { return 3; }  // floats are equalized as bytes

 private:
  void plan_image(FieldState& image) const override { plan_pixels(true, image); }
  Result<void> change(OpContext& context, int field) const override {
    return compute(context, field, equalize_pass());
  }
};

const OpRecord kRandomEqualize{
    .name = "RandomEqualize",
    .doc =
        "Spreads the values of each channel evenly over 0 to 255, with probability p.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32; shape and dtype are "
        "unchanged, and so are masks. It needs a histogram of the whole image, so earlier "
        "transforms are executed first, which adds a pass. Floats are equalized in steps of 1/255, "
        "as in torchvision; values outside 0 to 1 count as 0 or 1.",
    .page = {.section = "Color transforms", .step = "T.RandomEqualize(1.0)"},
    .params = {probability_param("Probability of equalizing a record's images.")},
    .oracle = "torchvision v2's equalize, and Pillow's ImageOps.equalize, bit for bit",
    .example = {{"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomEqualize>(arguments.number("p"));
    }};
const Register<OpRecord> registered_random_equalize(kRandomEqualize);

}  // namespace
}  // namespace headrace
