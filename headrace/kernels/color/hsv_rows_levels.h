// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for hsv_rows.cc. Internal to kernels/.
#pragma once

#include "headrace/kernels/color/hsv_rows.h"

namespace headrace {

constexpr int kHsvBits = 12;  // of the quotients' fractions

// OpenCV's quotients by a value or a range, times 2^kHsvBits: of 255, and of 30 (a sixth of the
// circle).
struct HsvQuotients {
  int32_t of_saturation[256], of_hue[256];
};

struct HsvKernels {
  void (*change)(const uint8_t* const rgb[3], int count, const HsvChange& change,
                 const HsvQuotients& quotients, uint8_t* const out[3]);
};

// Null where the architecture has no such level.
const HsvKernels* hsv_kernels_avx2();
const HsvKernels* hsv_kernels_avx512();
const HsvKernels* hsv_kernels_neon();

}  // namespace headrace
