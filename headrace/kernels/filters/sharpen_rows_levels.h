// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for sharpen_rows.cc. Internal to kernels/.
#pragma once

#include "headrace/kernels/filters/sharpen_rows.h"

namespace headrace {

struct SharpenKernels {
  // The blur of columns 1 to width - 2, to `out` from its beginning. False, and nothing is done,
  // where the rows are too short for lanes.
  bool (*blur)(const ThreeRows& in, int width, uint8_t* out);
  // Each value drawn away from the other one, as torch computes it. May read and write up to 63
  // bytes past `count`.
  void (*draw_away)(const uint8_t* value, const uint8_t* other, int count, float rest,
                    uint8_t* out);
};

// The weighted sum of nine, s, as a rounded thirteenth: (2 s + 13) / 26, by a product of 16 bits
// and a shift that are exact for all sums up to 13 * 255.
inline constexpr int kThirteenthFactor = 40330, kThirteenthShift = 4;

// Null where the architecture has no such level.
const SharpenKernels* sharpen_kernels_avx2();
const SharpenKernels* sharpen_kernels_avx512();
const SharpenKernels* sharpen_kernels_neon();

}  // namespace headrace
