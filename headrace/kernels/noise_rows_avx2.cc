// SPDX-License-Identifier: Apache-2.0
// Random numbers with AVX2 and FMA. Twin: the loops of noise_rows.cc.
#include "headrace/kernels/noise_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2,fma");

#include "headrace/kernels/float_lanes_avx2.h"

namespace headrace {
namespace {

// Both halves of the products without signs.
struct WideProduct {
  Numbers high, low;
};
inline WideProduct wide_product(Numbers a, Numbers b) {
  const Numbers even = _mm256_mul_epu32(a, b);
  const Numbers odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), b);
  return {_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA),
          _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA)};
}
inline Numbers load(const uint32_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline Numbers bits_of(Floats v) { return _mm256_castps_si256(v); }
inline Floats with_bits(Numbers v) { return _mm256_castsi256_ps(v); }
inline Floats root(Floats v) { return _mm256_sqrt_ps(v); }
inline void store(uint32_t* to, Numbers v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v);
}

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/noise_rows_loops.h"

namespace headrace {

const NoiseKernels* noise_kernels_avx2() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const NoiseKernels* noise_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
