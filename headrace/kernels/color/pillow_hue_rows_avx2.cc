// SPDX-License-Identifier: Apache-2.0
// Pillow's hues with AVX2 and FMA. Twin: the loops of pillow_hue_rows.cc.
#include "headrace/kernels/color/pillow_hue_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "headrace/kernels/target.h"

#define HEADRACE_LEVEL avx2

HEADRACE_TARGET("avx2,fma");

namespace headrace::HEADRACE_LEVEL {
namespace {

// Half as many as of float32 alone: their float64 fill a vector.
using Floats = __m128;
using Doubles = __m256d;
using Ints = __m128i;
constexpr int kLanes = 4;

inline Ints Set(int v) { return _mm_set1_epi32(v); }
inline Doubles Set(double v) { return _mm256_set1_pd(v); }
inline Ints LoadBytesAsInts(const uint8_t* from) {
  int32_t four;
  std::memcpy(&four, from, sizeof(four));
  return _mm_cvtepu8_epi32(_mm_cvtsi32_si128(four));
}
inline Ints Add(Ints a, Ints b) { return _mm_add_epi32(a, b); }
inline Ints Sub(Ints a, Ints b) { return _mm_sub_epi32(a, b); }
inline Ints And(Ints a, Ints b) { return _mm_and_si128(a, b); }
inline Ints Max(Ints a, Ints b) { return _mm_max_epi32(a, b); }
inline Ints Min(Ints a, Ints b) { return _mm_min_epi32(a, b); }
using Mask = __m128i;
inline Mask Eq(Ints a, Ints b) { return _mm_cmpeq_epi32(a, b); }
inline Ints IfThenElse(Mask first, Ints a, Ints b) { return _mm_blendv_epi8(b, a, first); }
inline Floats IfThenElse(Mask first, Floats a, Floats b) {
  return _mm_blendv_ps(b, a, _mm_castsi128_ps(first));
}
inline Floats ToFloats(Ints v) { return _mm_cvtepi32_ps(v); }
inline Floats ToFloats(Doubles v) { return _mm256_cvtpd_ps(v); }
inline Doubles ToDoubles(Floats v) { return _mm256_cvtps_pd(v); }
inline Ints TruncToInts(Doubles v) { return _mm256_cvttpd_epi32(v); }
inline Doubles Trunc(Doubles v) {
  return _mm256_round_pd(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
inline Floats Sub(Floats a, Floats b) { return _mm_sub_ps(a, b); }
inline Floats Mul(Floats a, Floats b) { return _mm_mul_ps(a, b); }
inline Floats Div(Floats a, Floats b) { return _mm_div_ps(a, b); }
inline Doubles Add(Doubles a, Doubles b) { return _mm256_add_pd(a, b); }
inline Doubles Sub(Doubles a, Doubles b) { return _mm256_sub_pd(a, b); }
inline Doubles Mul(Doubles a, Doubles b) { return _mm256_mul_pd(a, b); }
inline Doubles Div(Doubles a, Doubles b) { return _mm256_div_pd(a, b); }
inline Ints Gather(const int32_t* table, Ints at) { return _mm_i32gather_epi32(table, at, 4); }
inline Floats Gather(const float* table, Ints at) { return _mm_i32gather_ps(table, at, 4); }
inline void StoreAsBytes(uint8_t* to, Ints v) {
  const __m128i words = _mm_packs_epi32(v, v);
  const int32_t four = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
  std::memcpy(to, &four, sizeof(four));
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

// After its lanes:
#include "headrace/kernels/color/pillow_hue_rows_loops.h"

namespace headrace {

TurnPillowHue pillow_hue_avx2() { return avx2::turn_pillow_hue; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
TurnPillowHue pillow_hue_avx2() { return nullptr; }
}  // namespace headrace

#endif
