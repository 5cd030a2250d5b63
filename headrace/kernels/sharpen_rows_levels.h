// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for sharpen_rows.cc. Internal to kernels/.
#pragma once

#include "headrace/kernels/sharpen_rows.h"

namespace headrace {

// Each returns the column that it has come to, from column 1 on; the scalar twin does the rest.
struct SharpenKernels {
  int (*as_torch)(const ThreeRows& in, int width, float rest, uint8_t* out);
  int (*as_pillow)(const ThreeRows& in, int width, float factor, uint8_t* out);
};

// The weighted sum of nine, s, as a rounded thirteenth: (2 s + 13) / 26, by a product and a shift
// that are exact for all sums up to 13 * 255.
inline constexpr int kThirteenthFactor = 80660, kThirteenthShift = 21;

// Null where the architecture has no such level.
const SharpenKernels* sharpen_kernels_avx2();
const SharpenKernels* sharpen_kernels_avx512();

}  // namespace headrace
