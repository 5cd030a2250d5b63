// SPDX-License-Identifier: Apache-2.0
// RandomAdjustSharpness: a picture drawn towards its blur, or away from it, with probability p.
#include <cstring>
#include <memory>

#include "headrace/base/registry.h"
#include "headrace/kernels/sharpen_rows.h"
#include "headrace/ops/color_steps.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

// The border stays, as in both libraries.
void sharpen_plane(const uint8_t* in, int width, int height, double factor, Arithmetic arithmetic,
                   uint8_t* out) {
  std::memcpy(out, in, size_t(width) * size_t(height));
  const auto own = static_cast<float>(factor), rest = static_cast<float>(1.0 - factor);
  for (int y = 1; y < height - 1; ++y) {
    const uint8_t* const row = in + size_t(y) * size_t(width);
    const ThreeRows rows{row - width, row, row + width};
    uint8_t* const to = out + size_t(y) * size_t(width);
    if (arithmetic == Arithmetic::kPillow) {
      sharpen_row_as_pillow(rows, width, own, to);
    } else {
      sharpen_row(rows, width, rest, to);
    }
  }
}

class RandomAdjustSharpness final : public RandomPixelOp {
 public:
  RandomAdjustSharpness(double factor, double p, Arithmetic arithmetic)
      : RandomPixelOp("RandomAdjustSharpness", p), factor_(factor), arithmetic_(arithmetic) {}
  bool measures() const override { return true; }

 private:
  void plan_image(FieldState& image) const override { plan_step(table_step({}), image); }
  Result<void> change(OpContext& context, int field) const override {
    const auto pixels = pixels_now(context, field);
    if (!pixels) return pixels.error();
    const Picture& in = **pixels;
    auto out = std::make_shared<Picture>(in.channels, in.height, in.width, in.dtype);
    for (int c = 0; c < in.channels; ++c) {
      sharpen_plane(in.plane(c), in.width, in.height, factor_, arithmetic_, out->plane(c));
    }
    context.record.fields[field].picture = Recipe(std::move(out));
    return {};
  }
  const double factor_;
  const Arithmetic arithmetic_;
};

const OpRecord kRandomAdjustSharpness{
    .name = "RandomAdjustSharpness",
    .doc =
        "Draws an image towards its blur of 3 x 3, or away from it, with probability p.\n\n"
        "Images of one or three channels, (C, H, W), uint8; shape and dtype stay, and masks are "
        "left as they are. The outermost pixels stay, and so does a picture that has no others. "
        "What comes before is computed first, and a second pass begins.",
    .params = {{.name = "sharpness_factor",
                .type = ParamType::kFloat,
                .doc = "0 is the blur, 1 changes nothing, 2 is as much sharper.",
                .required = true,
                .minimum = 0},
               probability_param("How probable it is that a record's images are sharpened."),
               arithmetic_param()},
    .oracle = "torchvision v2's adjust_sharpness on tensors, or on Pillow's pictures, bit for bit",
    .example = {{"sharpness_factor", 2.0}, {"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomAdjustSharpness>(
          arguments.number("sharpness_factor"), arguments.number("p"), arithmetic_from(arguments));
    }};
const Register<OpRecord> registered_random_adjust_sharpness(kRandomAdjustSharpness);

}  // namespace
}  // namespace headrace
