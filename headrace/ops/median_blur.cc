// SPDX-License-Identifier: Apache-2.0
// MedianBlur: each sample becomes the median of its square neighbourhood.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/image/padding.h"
#include "headrace/kernels/median_rows.h"
#include "headrace/ops/blur_limit.h"
#include "headrace/ops/color_steps.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/remade_op.h"

namespace headrace {
namespace {

// Up to kWidestMedian by sorting networks, row by row.
void small_medians(const Picture& in, int size, Picture& out) {
  constexpr size_t kBeyond = 64 + kWidestMedian;
  const int half = size / 2;
  const size_t width = size_t(in.width), stride = width + size_t(size) + kBeyond;
  std::vector<uint8_t> ring(stride * size_t(size)), made(width + kBeyond);
  std::array<const uint8_t*, kWidestMedian> rows{};
  for (int c = 0; c < in.channels; ++c) {
    const auto fill = [&](int y) {
      const uint8_t* const from =
          in.plane(c) + width * size_t(padded_place(Padding::kEdge, y, in.height));
      uint8_t* to = ring.data() + stride * size_t((y + half) % size);
      to = std::fill_n(to, half, from[0]);
      to = std::copy_n(from, width, to);
      std::fill_n(to, half, from[width - 1]);
    };
    for (int y = -half; y < half; ++y) fill(y);
    for (int y = 0; y < in.height; ++y) {
      fill(y + half);
      for (int r = 0; r < size; ++r) rows[size_t(r)] = ring.data() + stride * size_t(r);
      median_row(rows.data(), size, in.width, made.data());
      std::copy_n(made.data(), width, out.plane(c) + width * size_t(y));
    }
  }
}

// A histogram that moves along a row, and the place of the median in it (Huang et al., 1979).
void large_medians(const Picture& in, int size, Picture& out) {
  const int half = size / 2, wanted = size * size / 2;
  const auto padded =
      padded_part(in, Padding::kEdge, {-half, -half, in.width + 2 * half, in.height + 2 * half});
  const size_t stride = size_t(padded->width);
  for (int c = 0; c < in.channels; ++c) {
    uint8_t* to = out.plane(c);
    for (int y = 0; y < in.height; ++y) {
      const uint8_t* const rows = padded->plane(c) + stride * size_t(y);
      std::array<int, 256> counts{};
      for (int r = 0; r < size; ++r) {
        for (int x = 0; x < size; ++x) ++counts[rows[stride * size_t(r) + size_t(x)]];
      }
      int median = 0, below = 0;
      for (int x = 0; x < in.width; ++x) {
        for (int r = 0; x > 0 && r < size; ++r) {
          const uint8_t* const row = rows + stride * size_t(r) + x;
          --counts[row[-1]];
          below -= row[-1] < median;
          ++counts[row[size - 1]];
          below += row[size - 1] < median;
        }
        while (below > wanted) below -= counts[size_t(--median)];
        while (below + counts[size_t(median)] <= wanted) below += counts[size_t(median++)];
        *to++ = static_cast<uint8_t>(median);
      }
    }
  }
}

class MedianBlur final : public RemadeOp {
 public:
  MedianBlur(BlurLimit limit, double p) : RemadeOp("MedianBlur"), limit_(limit), p_(p) {}

  Result<void> apply(OpContext& context) const override {
    if (!context.draws.coin(p_)) return {};
    const int size = limit_.draw(context.draws);
    return remake_all(context, [&](const Picture& in, Picture& out) -> Result<void> {
      (size <= kWidestMedian ? small_medians : large_medians)(in, size, out);
      return {};
    });
  }

 private:
  void plan_image(FieldState& image) const override { plan_step(table_step({}), image); }
  const BlurLimit limit_;
  const double p_;
};

const OpRecord kMedianBlur{
    .name = "MedianBlur",
    .doc =
        "Replaces each sample by the median of its square neighbourhood, with probability p.\n\n"
        "Images of one or three channels, (C, H, W), uint8; shape and dtype stay, and masks are "
        "left as they are. Each channel has its own medians; borders repeat the outermost pixels. "
        "What comes before is computed first, and a second pass begins.",
    .params = {blur_limit_param(),
               probability_param("How probable it is that a record's images are blurred.")},
    .oracle = "OpenCV's medianBlur, bit for bit; draws as Albumentations' MedianBlur",
    .example = {{"blur_limit", std::vector<int64_t>{3, 9}}, {"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<MedianBlur>(BlurLimit("MedianBlur", arguments),
                                          arguments.number("p"));
    }};
const Register<OpRecord> registered_median_blur(kMedianBlur);

}  // namespace
}  // namespace headrace
