// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for convolve_rows.cc. Internal to kernels/.
#pragma once

#include <cstdint>

namespace headrace {

struct ConvolveKernels {
  void (*along)(const float* in, const float* weights, int taps, int count, float* out);
  void (*across)(const float* const rows[], const float* weights, int taps, int count,
                 uint8_t* out);
  void (*across_floats)(const float* const rows[], const float* weights, int taps, int count,
                        float* out);
};

// Null where the architecture has no such level.
const ConvolveKernels* convolve_kernels_avx2();
const ConvolveKernels* convolve_kernels_avx512();
const ConvolveKernels* convolve_kernels_neon();

}  // namespace headrace
