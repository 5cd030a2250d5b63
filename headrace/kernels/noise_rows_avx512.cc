// SPDX-License-Identifier: Apache-2.0
// Random numbers with AVX-512. Twin: the loops of noise_rows.cc.
#include "headrace/kernels/noise_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512vl");

#include "headrace/kernels/float_lanes_avx512.h"

namespace headrace {
namespace {

// Both halves of the products without signs.
struct WideProduct {
  Numbers high, low;
};
inline WideProduct wide_product(Numbers a, Numbers b) {
  const Numbers even = _mm512_mul_epu32(a, b);
  const Numbers odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), b);
  return {_mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), 0xAAAA, odd),
          _mm512_mask_mov_epi32(even, 0xAAAA, _mm512_slli_epi64(odd, 32))};
}
inline Numbers load(const uint32_t* from) { return _mm512_loadu_si512(from); }
inline Numbers bits_of(Floats v) { return _mm512_castps_si512(v); }
inline Floats with_bits(Numbers v) { return _mm512_castsi512_ps(v); }
inline Floats root(Floats v) { return _mm512_sqrt_ps(v); }
inline void store(uint32_t* to, Numbers v) { _mm512_storeu_si512(to, v); }

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/noise_rows_loops.h"

namespace headrace {

const NoiseKernels* noise_kernels_avx512() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const NoiseKernels* noise_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
