// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for upsample.cc. Internal to kernels/.
#pragma once

#include <cstdint>

namespace headrace {

struct UpsampleKernels {
  void (*h2v1)(const uint8_t* in, int count, uint8_t* out);
  void (*h2v2)(const uint8_t* near, const uint8_t* far, int count, uint8_t* out);
  // bias: 1 for the upper output row, 2 for the lower one
  void (*h1v2)(const uint8_t* near, const uint8_t* far, int bias, int count, uint8_t* out);
};

// Null where the architecture has no such level.
const UpsampleKernels* upsample_kernels_avx2();
const UpsampleKernels* upsample_kernels_avx512();
const UpsampleKernels* upsample_kernels_neon();

}  // namespace headrace
