// SPDX-License-Identifier: Apache-2.0
// RandomAutocontrast: each channel's values are stretched to 0 to 255, with probability p.
#include <algorithm>
#include <cmath>

#include "headrace/base/registry.h"
#include "headrace/ops/color_steps.h"

namespace headrace {
namespace {

// Of a channel with these values at its ends; one of a single value stays.
struct Stretch {
  int least, most;
  Arithmetic arithmetic;

  uint8_t of(int value) const {
    if (least == most) return static_cast<uint8_t>(value);
    if (arithmetic == Arithmetic::kPillow) {
      const double scale = 255.0 / (most - least), offset = -least * scale;
      return static_cast<uint8_t>(std::clamp(std::trunc(value * scale + offset), 0.0, 255.0));
    }
    const float unit = static_cast<float>(most - least) * static_cast<float>(1.0 / 255);
    const float stretched = static_cast<float>(value - least) / unit;
    return static_cast<uint8_t>(std::clamp(stretched, 0.0f, 255.0f));
  }
};

class RandomAutocontrast final : public RandomPixelOp {
 public:
  RandomAutocontrast(double p, Arithmetic arithmetic)
      : RandomPixelOp("RandomAutocontrast", p), arithmetic_(arithmetic) {}
  bool measures() const override { return true; }

 private:
  void plan_image(FieldState& image) const override { plan_step(table_step({}), image); }
  Result<void> change(OpContext& context, int field) const override {
    const auto pixels = pixels_now(context, field);
    if (!pixels) return pixels.error();
    ColorTable table;
    for (int c = 0; c < std::min((*pixels)->channels, 3); ++c) {
      const auto [least, most] = extremes_of(**pixels, c);
      const Stretch stretch{least, most, arithmetic_};
      for (int value = 0; value < 256; ++value) {
        table.of[size_t(c)][size_t(value)] = stretch.of(value);
      }
    }
    return compute(context, field, table_step(table));
  }
  const Arithmetic arithmetic_;
};

const OpRecord kRandomAutocontrast{
    .name = "RandomAutocontrast",
    .doc =
        "Stretches the values of each channel to 0 to 255, with probability p.\n\n"
        "Images of one or three channels, (C, H, W), uint8; shape and dtype stay, and masks "
        "are left as they are. The picture is measured first, so what stands before is "
        "computed before it: a second pass.",
    .params = {probability_param("How probable it is that a record's images are stretched."),
               arithmetic_param()},
    .oracle = "torchvision v2's autocontrast on tensors, or on Pillow's pictures, bit for bit",
    .example = {{"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomAutocontrast>(arguments.number("p"),
                                                  arithmetic_from(arguments));
    }};
const Register<OpRecord> registered_random_autocontrast(kRandomAutocontrast);

}  // namespace
}  // namespace headrace
