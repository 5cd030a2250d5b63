// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for rows.cc. Internal to kernels/.
#pragma once

#include <cstdint>

namespace headrace {

struct RowKernels {
  // Does a prefix of the row and returns its length; the scalar loop does the rest.
  int (*deinterleave3)(const uint8_t* in, int count, uint8_t* const out[]);
  int (*mirror)(const uint8_t* in, int count, uint8_t* out);
};

// Null where the architecture has no such level.
const RowKernels* row_kernels_avx2();
const RowKernels* row_kernels_avx512();
const RowKernels* row_kernels_neon();

}  // namespace headrace
