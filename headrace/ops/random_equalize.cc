// SPDX-License-Identifier: Apache-2.0
// RandomEqualize: each channel's values are spread evenly, with probability p.
#include <algorithm>
#include <numeric>

#include "headrace/base/registry.h"
#include "headrace/ops/color_steps.h"

namespace headrace {
namespace {

// Pillow's scheme: pixels below a value, in steps of a 255th of all but those of the largest.
void equalize(const Histogram& counts, std::array<uint8_t, 256>& table) {
  std::iota(table.begin(), table.end(), uint8_t{0});
  const int64_t pixels = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const auto largest =
      std::find_if(counts.rbegin(), counts.rend(), [](int64_t n) { return n > 0; });
  if (largest == counts.rend()) return;
  const int64_t step = (pixels - *largest) / 255;
  if (step == 0) return;
  int64_t below = step / 2;
  for (size_t value = 0; value < table.size(); ++value) {
    table[value] = static_cast<uint8_t>(std::min<int64_t>(below / step, 255));
    below += counts[value];
  }
}

class RandomEqualize final : public RandomPixelOp {
 public:
  explicit RandomEqualize(double p) : RandomPixelOp("RandomEqualize", p) {}
  bool measures() const override { return true; }

 private:
  void plan_image(FieldState& image) const override { plan_step(table_step({}), image); }
  Result<void> change(OpContext& context, int field) const override {
    const auto pixels = pixels_now(context, field);
    if (!pixels) return pixels.error();
    ColorTable table;
    for (int c = 0; c < std::min((*pixels)->channels, 3); ++c) {
      equalize(histogram_of(**pixels, c), table.of[size_t(c)]);
    }
    return compute(context, field, table_step(table));
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
