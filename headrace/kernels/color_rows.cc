// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/color_rows.h"

#include <array>
#include <cstddef>

#include "headrace/kernels/color_rows_levels.h"
#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

void luma_from_rgb(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  for (int i = 0; i < count; ++i) {
    gray[i] = static_cast<uint8_t>(luma_of(rgb[0][i], rgb[1][i], rgb[2][i]));
  }
}

constexpr ColorRowKernels kScalar{luma_from_rgb};

const ColorRowKernels& kernels() {
  static const std::array<const ColorRowKernels*, 3> by_level{&kScalar, color_row_kernels_avx2(),
                                                              color_row_kernels_avx512()};
  return *by_level[static_cast<size_t>(simd_level())];
}

}  // namespace

void luma_from_rgb_rows(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  kernels().luma_from_rgb(rgb, count, gray);
}

}  // namespace headrace
