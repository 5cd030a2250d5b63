// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for mean_rows.cc. Internal to kernels/.
#pragma once

#include "headrace/kernels/filters/mean_rows.h"

namespace headrace {

struct MeanKernels {
  void (*mean)(const uint8_t* const rows[], int n, int count, uint8_t* out);
};

// Null where the architecture has no such level.
const MeanKernels* mean_kernels_avx2();
const MeanKernels* mean_kernels_avx512();
const MeanKernels* mean_kernels_neon();

}  // namespace headrace
