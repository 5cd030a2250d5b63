// SPDX-License-Identifier: Apache-2.0
// Pillow's hues with AVX2 and FMA. Twin: the loops of pillow_hue_rows.cc.
#include "headrace/kernels/color/pillow_hue_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2,fma");

namespace headrace {
namespace {

// Half as many as of float32 alone: their float64 fill a vector.
using Floats = __m128;
using Doubles = __m256d;
using Numbers = __m128i;
constexpr int kLanes = 4;

inline Numbers all(int v) { return _mm_set1_epi32(v); }
inline Doubles all(double v) { return _mm256_set1_pd(v); }
inline Numbers numbers_at(const uint8_t* from) {
  int32_t four;
  std::memcpy(&four, from, sizeof(four));
  return _mm_cvtepu8_epi32(_mm_cvtsi32_si128(four));
}
inline Numbers sum(Numbers a, Numbers b) { return _mm_add_epi32(a, b); }
inline Numbers difference(Numbers a, Numbers b) { return _mm_sub_epi32(a, b); }
inline Numbers common(Numbers a, Numbers b) { return _mm_and_si128(a, b); }
inline Numbers most_of(Numbers a, Numbers b) { return _mm_max_epi32(a, b); }
inline Numbers least_of(Numbers a, Numbers b) { return _mm_min_epi32(a, b); }
using Mask = __m128i;
inline Mask equal(Numbers a, Numbers b) { return _mm_cmpeq_epi32(a, b); }
inline Numbers chosen(Mask first, Numbers a, Numbers b) { return _mm_blendv_epi8(b, a, first); }
inline Floats chosen(Mask first, Floats a, Floats b) {
  return _mm_blendv_ps(b, a, _mm_castsi128_ps(first));
}
inline Floats floats_of(Numbers v) { return _mm_cvtepi32_ps(v); }
inline Floats floats_of(Doubles v) { return _mm256_cvtpd_ps(v); }
inline Doubles doubles_of(Floats v) { return _mm256_cvtps_pd(v); }
inline Numbers cut_off(Doubles v) { return _mm256_cvttpd_epi32(v); }
inline Doubles whole_of(Doubles v) {
  return _mm256_round_pd(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
inline Floats difference(Floats a, Floats b) { return _mm_sub_ps(a, b); }
inline Floats product(Floats a, Floats b) { return _mm_mul_ps(a, b); }
inline Floats quotient(Floats a, Floats b) { return _mm_div_ps(a, b); }
inline Doubles sum(Doubles a, Doubles b) { return _mm256_add_pd(a, b); }
inline Doubles difference(Doubles a, Doubles b) { return _mm256_sub_pd(a, b); }
inline Doubles product(Doubles a, Doubles b) { return _mm256_mul_pd(a, b); }
inline Doubles quotient(Doubles a, Doubles b) { return _mm256_div_pd(a, b); }
inline Numbers looked_up(const int32_t* table, Numbers at) {
  return _mm_i32gather_epi32(table, at, 4);
}
inline Floats looked_up(const float* table, Numbers at) { return _mm_i32gather_ps(table, at, 4); }
inline void store_bytes(uint8_t* to, Numbers v) {
  const __m128i words = _mm_packs_epi32(v, v);
  const int32_t four = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
  std::memcpy(to, &four, sizeof(four));
}

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/color/pillow_hue_rows_loops.h"

namespace headrace {

TurnPillowHue pillow_hue_avx2() { return turn_pillow_hue; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
TurnPillowHue pillow_hue_avx2() { return nullptr; }
}  // namespace headrace

#endif
