// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for median_rows.cc. Internal to kernels/.
#pragma once

#include "headrace/kernels/filters/median_rows.h"

namespace headrace {

struct MedianKernels {
  void (*of[3])(const uint8_t* const rows[], int count, uint8_t* out);  // of 3, 5 and 7
};

// Null where the architecture has no such level.
const MedianKernels* median_kernels_avx2();
const MedianKernels* median_kernels_avx512();
const MedianKernels* median_kernels_neon();

}  // namespace headrace
