// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/filters/sharpen_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/filters/sharpen_rows_levels.h"

namespace headrace {
namespace {

// Null for the scalar level.
const SharpenKernels* kernels() {
  static const ByLevel<const SharpenKernels*> by_level{
      nullptr, sharpen_kernels_avx2(), sharpen_kernels_avx512(), sharpen_kernels_neon()};
  return by_level.in_force();
}

// Both libraries' blur: weights of 1, and 5 in the middle, of 13; rounded.
int blur_at(const ThreeRows& in, int x) {
  int sum = 4 * in.row[x];
  for (const uint8_t* row : {in.above, in.row, in.below}) sum += row[x - 1] + row[x] + row[x + 1];
  return (2 * sum + 13) / 26;
}

// Calls blend(value, blur, count, out) for the inner columns, in parts whose blur stays in the
// first-level cache.
template <class Blend>
void with_blur(const ThreeRows& in, int width, uint8_t* out, Blend&& blend) {
  constexpr int kColumns = 1024;
  uint8_t blur[kColumns + 63];
  for (int x = 1; x < width - 1; x += kColumns) {
    const int count = std::min(kColumns, width - 1 - x);
    const ThreeRows part{in.above + x - 1, in.row + x - 1, in.below + x - 1};
    const SharpenKernels* const simd = kernels();
    if (!simd || !simd->blur(part, count + 2, blur)) {
      for (int i = 0; i < count; ++i) blur[i] = static_cast<uint8_t>(blur_at(part, 1 + i));
    }
    blend(in.row + x, blur, count, out + x);
  }
}

}  // namespace

void sharpen_row(const ThreeRows& in, int width, float rest, uint8_t* out) {
  with_blur(in, width, out, [&](const uint8_t* row, const uint8_t* blur, int count, uint8_t* to) {
    if (const SharpenKernels* simd = kernels()) return simd->draw_away(row, blur, count, rest, to);
    for (int i = 0; i < count; ++i) {
      const auto value = static_cast<float>(row[i]);
      const float difference = static_cast<float>(blur[i]) - value;
      to[i] = static_cast<uint8_t>(std::clamp(std::fma(difference, rest, value), 0.0f, 255.0f));
    }
  });
}

void sharpen_row_as_pillow(const ThreeRows& in, int width, const PillowBlend& blend, uint8_t* out) {
  with_blur(in, width, out, [&](const uint8_t* row, const uint8_t* blur, int count, uint8_t* to) {
    blend_row_as_pillow(row, blur, count, blend, to);
  });
}

}  // namespace headrace
