// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/sharpen_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "headrace/kernels/color_rows.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/sharpen_rows_levels.h"

namespace headrace {
namespace {

// Null for the scalar level.
const SharpenKernels* kernels() {
  static const std::array<const SharpenKernels*, 3> by_level{nullptr, sharpen_kernels_avx2(),
                                                             sharpen_kernels_avx512()};
  return by_level[static_cast<size_t>(simd_level())];
}

// Both libraries' blur: weights of 1, and 5 in the middle, of 13; rounded.
int blur_at(const ThreeRows& in, int x) {
  int sum = 4 * in.row[x];
  for (const uint8_t* row : {in.above, in.row, in.below}) sum += row[x - 1] + row[x] + row[x + 1];
  return (2 * sum + 13) / 26;
}

}  // namespace

void sharpen_row(const ThreeRows& in, int width, float rest, uint8_t* out) {
  int x = 1;
  if (const SharpenKernels* simd = kernels()) x = simd->as_torch(in, width, rest, out);
  for (; x < width - 1; ++x) {
    const auto value = static_cast<float>(in.row[x]);
    const float difference = static_cast<float>(blur_at(in, x)) - value;
    out[x] = static_cast<uint8_t>(std::clamp(std::fma(difference, rest, value), 0.0f, 255.0f));
  }
}

void sharpen_row_as_pillow(const ThreeRows& in, int width, float factor, uint8_t* out) {
  int x = 1;
  if (const SharpenKernels* simd = kernels()) x = simd->as_pillow(in, width, factor, out);
  for (; x < width - 1; ++x) out[x] = blend_as_pillow(in.row[x], blur_at(in, x), factor);
}

}  // namespace headrace
