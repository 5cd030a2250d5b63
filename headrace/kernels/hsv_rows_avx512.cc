// SPDX-License-Identifier: Apache-2.0
// HSV with AVX-512. Twin: the loops of hsv_rows.cc.
#include "headrace/kernels/hsv_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512vl");

#include "headrace/kernels/float_lanes_avx512.h"

namespace headrace {
namespace {

inline Numbers subtracted(Numbers a, Numbers b) { return _mm512_sub_epi32(a, b); }
inline Numbers most_of(Numbers a, Numbers b) { return _mm512_max_epi32(a, b); }
inline Numbers least_of(Numbers a, Numbers b) { return _mm512_min_epi32(a, b); }
inline Numbers scaled_down(Numbers v) { return _mm512_srai_epi32(v, 12); }
inline Numbers cut_off(Floats v) { return _mm512_cvttps_epi32(v); }
inline Numbers to_bytes(Numbers v) {
  return _mm512_min_epi32(_mm512_max_epi32(v, _mm512_setzero_si512()), all(255));
}
using Chosen = __mmask16;
inline Chosen equal(Numbers a, Numbers b) { return _mm512_cmpeq_epi32_mask(a, b); }
inline Chosen below(Numbers a, Numbers b) { return _mm512_cmplt_epi32_mask(a, b); }
inline Numbers chosen(Chosen first, Numbers a, Numbers b) {
  return _mm512_mask_mov_epi32(b, first, a);
}
inline Floats chosen(Chosen first, Floats a, Floats b) { return _mm512_mask_mov_ps(b, first, a); }
inline Numbers looked_up(const int32_t* table, Numbers at) {
  return _mm512_i32gather_epi32(at, table, 4);
}

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/hsv_rows_loops.h"

namespace headrace {

const HsvKernels* hsv_kernels_avx512() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const HsvKernels* hsv_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
