// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for color_rows.cc. Internal to kernels/.
#pragma once

#include <cstdint>

namespace headrace {

struct ColorRowKernels {
  void (*luma_from_rgb)(const uint8_t* const rgb[3], int count, uint8_t* gray);
};

// Null where the architecture has no such level.
const ColorRowKernels* color_row_kernels_avx2();
const ColorRowKernels* color_row_kernels_avx512();

}  // namespace headrace
