// SPDX-License-Identifier: Apache-2.0
// HSV with AVX2 and FMA. Twin: the loops of hsv_rows.cc.
#include "headrace/kernels/hsv_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2,fma");

#include "headrace/kernels/float_lanes_avx2.h"

namespace headrace {
namespace {

inline Numbers subtracted(Numbers a, Numbers b) { return _mm256_sub_epi32(a, b); }
inline Numbers most_of(Numbers a, Numbers b) { return _mm256_max_epi32(a, b); }
inline Numbers least_of(Numbers a, Numbers b) { return _mm256_min_epi32(a, b); }
inline Numbers scaled_down(Numbers v) { return _mm256_srai_epi32(v, 12); }
inline Numbers cut_off(Floats v) { return _mm256_cvttps_epi32(v); }
inline Numbers to_bytes(Numbers v) {
  return _mm256_min_epi32(_mm256_max_epi32(v, _mm256_setzero_si256()), all(255));
}
using Chosen = __m256i;
inline Chosen equal(Numbers a, Numbers b) { return _mm256_cmpeq_epi32(a, b); }
inline Chosen below(Numbers a, Numbers b) { return _mm256_cmpgt_epi32(b, a); }
inline Numbers chosen(Chosen first, Numbers a, Numbers b) {
  return _mm256_blendv_epi8(b, a, first);
}
inline Floats chosen(Chosen first, Floats a, Floats b) {
  return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(first));
}
inline Numbers looked_up(const int32_t* table, Numbers at) {
  return _mm256_i32gather_epi32(table, at, 4);
}

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/hsv_rows_loops.h"

namespace headrace {

const HsvKernels* hsv_kernels_avx2() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const HsvKernels* hsv_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
