// SPDX-License-Identifier: Apache-2.0
// What SIMD levels implement for samples.cc. Internal to kernels/.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

// Each converts as many samples from the first on as whole vectors hold, and says how many; they
// read no byte behind the last sample. Integers are multiplied by `scale`, 24 bits as the upper
// ones of 32.
struct SampleKernels {
  size_t (*int16)(const uint8_t* from, size_t step, size_t count, float scale, float* to);
  size_t (*int24)(const uint8_t* from, size_t step, size_t count, float scale, float* to);
  size_t (*int32)(const uint8_t* from, size_t step, size_t count, float scale, float* to);
  size_t (*float32)(const uint8_t* from, size_t step, size_t count, float* to);
};

// Null where the architecture has no such level.
const SampleKernels* sample_kernels_avx2();

}  // namespace headrace
