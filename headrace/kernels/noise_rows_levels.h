// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for noise_rows.cc. Internal to kernels/.
#pragma once

#include "headrace/kernels/noise_rows.h"

namespace headrace {

struct NoiseKernels {
  void (*random)(uint64_t key, uint32_t row, int count, uint32_t* out);
  void (*normal)(uint64_t key, uint32_t row, int count, float* out);
  void (*uniform_columns)(uint64_t key, int width, int height, int64_t stride, float* out);
  void (*sprinkle)(const uint8_t* in, const uint32_t* numbers, int count, int32_t white,
                   int32_t either, uint8_t* out);
  void (*add)(const uint8_t* in, const float* noise, int count, const ByteNoise& how, uint8_t* out);
};

// Null where the architecture has no such level.
const NoiseKernels* noise_kernels_avx2();
const NoiseKernels* noise_kernels_avx512();
const NoiseKernels* noise_kernels_neon();

}  // namespace headrace
