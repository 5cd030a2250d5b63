// SPDX-License-Identifier: Apache-2.0
// Pillow's hues with AVX-512. Twin: the loops of pillow_hue_rows.cc.
#include "headrace/kernels/color/pillow_hue_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

#define HEADRACE_LEVEL avx512

HEADRACE_TARGET("avx512f,avx512bw,avx512vl");

namespace headrace::HEADRACE_LEVEL {
namespace {

// Half as many as of float32 alone: their float64 fill a vector.
using Floats = __m256;
using Doubles = __m512d;
using Ints = __m256i;
constexpr int kLanes = 8;

inline Ints Set(int v) { return _mm256_set1_epi32(v); }
inline Doubles Set(double v) { return _mm512_set1_pd(v); }
inline Ints LoadBytesAsInts(const uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}
inline Ints Add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
inline Ints Sub(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
inline Ints And(Ints a, Ints b) { return _mm256_and_si256(a, b); }
inline Ints Max(Ints a, Ints b) { return _mm256_max_epi32(a, b); }
inline Ints Min(Ints a, Ints b) { return _mm256_min_epi32(a, b); }
using Mask = __mmask8;
inline Mask Eq(Ints a, Ints b) { return _mm256_cmpeq_epi32_mask(a, b); }
inline Ints IfThenElse(Mask first, Ints a, Ints b) { return _mm256_mask_mov_epi32(b, first, a); }
inline Floats IfThenElse(Mask first, Floats a, Floats b) { return _mm256_mask_mov_ps(b, first, a); }
inline Floats ToFloats(Ints v) { return _mm256_cvtepi32_ps(v); }
inline Floats ToFloats(Doubles v) { return _mm512_cvtpd_ps(v); }
inline Doubles ToDoubles(Floats v) { return _mm512_cvtps_pd(v); }
inline Ints TruncToInts(Doubles v) { return _mm512_cvttpd_epi32(v); }
inline Doubles Trunc(Doubles v) {
  return _mm512_roundscale_pd(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
inline Floats Sub(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
inline Floats Mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
inline Floats Div(Floats a, Floats b) { return _mm256_div_ps(a, b); }
inline Doubles Add(Doubles a, Doubles b) { return _mm512_add_pd(a, b); }
inline Doubles Sub(Doubles a, Doubles b) { return _mm512_sub_pd(a, b); }
inline Doubles Mul(Doubles a, Doubles b) { return _mm512_mul_pd(a, b); }
inline Doubles Div(Doubles a, Doubles b) { return _mm512_div_pd(a, b); }
inline Ints Gather(const int32_t* table, Ints at) { return _mm256_i32gather_epi32(table, at, 4); }
inline Floats Gather(const float* table, Ints at) { return _mm256_i32gather_ps(table, at, 4); }
inline void StoreAsBytes(uint8_t* to, Ints v) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm256_cvtepi32_epi8(v));
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

// After its lanes:
#include "headrace/kernels/color/pillow_hue_rows_loops.h"

namespace headrace {

TurnPillowHue pillow_hue_avx512() { return avx512::turn_pillow_hue; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
TurnPillowHue pillow_hue_avx512() { return nullptr; }
}  // namespace headrace

#endif
