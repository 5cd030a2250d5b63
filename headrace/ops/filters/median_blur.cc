// SPDX-License-Identifier: Apache-2.0
// MedianBlur: replaces each sample with the median of its square neighborhood.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/kernels/filters/filter_rows.h"
#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/filters/blur_limit.h"
#include "headrace/ops/filters/padded_rows.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/pixel_op.h"

namespace headrace {
namespace {

// A histogram that slides along the row, tracking the median's position in it (Huang et al., 1979).
void large_median_row(const uint8_t* const rows[], int size, int width, uint8_t* out) {
  const int wanted = size * size / 2;
  std::array<int, 256> counts{};
  for (int r = 0; r < size; ++r) {
    for (int x = 0; x < size; ++x) ++counts[rows[r][x]];
  }
  int median = 0, below = 0;
  for (int x = 0; x < width; ++x) {
    for (int r = 0; x > 0 && r < size; ++r) {
      const uint8_t goes = rows[r][x - 1], comes = rows[r][x + size - 1];
      --counts[goes];
      below -= goes < median;
      ++counts[comes];
      below += comes < median;
    }
    while (below > wanted) below -= counts[size_t(--median)];
    while (below + counts[size_t(median)] <= wanted) below += counts[size_t(median++)];
    out[x] = static_cast<uint8_t>(median);
  }
}

void blur_by_medians(const Picture& in, int size, Picture& out) {
  const auto median = size <= kWidestMedian ? median_row : large_median_row;
  const size_t width = size_t(in.width);
  PaddedRows rows(in, size, Padding::kEdge);
  std::vector<uint8_t> made(width + 64);
  for (int c = 0; c < in.channels; ++c) {
    for (int y = 0; y < in.height; ++y) {
      median(rows.around(c, y), size, in.width, made.data());
      std::copy_n(made.data(), width, out.plane(c) + width * size_t(y));
    }
  }
}

class MedianBlur final : public WholeImageOp {
 public:
  MedianBlur(BlurLimit limit, double p) : WholeImageOp("MedianBlur"), limit_(limit), p_(p) {}

  Result<void> apply(OpContext& context) const override {
    if (!context.draws.coin(p_)) return {};
    const int size = limit_.draw(context.draws);
    return transform_images(context, [&](const Picture& in, Picture& out) -> Result<void> {
      blur_by_medians(in, size, out);
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
        "Replaces each sample with the median of its square neighborhood, with probability p.\n\n"
        "Images of one or three channels, (C, H, W), uint8; shape and dtype are unchanged, and "
        "so are masks. Each channel has its own medians; borders repeat the outermost pixels. "
        "Earlier transforms are rendered first, which adds a pass over the image.",
    .page = {.section = "Sharpness, blur and noise", .step = "T.MedianBlur((7, 9), p=1.0)"},
    .params = {blur_limit_param(), probability_param("Probability of blurring a record's images.")},
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
