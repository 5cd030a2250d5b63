// SPDX-License-Identifier: Apache-2.0
// Pillow's hues with AVX-512. Twin: the loops of pillow_hue_rows.cc.
#include "headrace/kernels/color/pillow_hue_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512vl");

namespace headrace {
namespace {

// Half as many as of float32 alone: their float64 fill a vector.
using Floats = __m256;
using Doubles = __m512d;
using Numbers = __m256i;
constexpr int kLanes = 8;

inline Numbers all(int v) { return _mm256_set1_epi32(v); }
inline Doubles all(double v) { return _mm512_set1_pd(v); }
inline Numbers numbers_at(const uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}
inline Numbers sum(Numbers a, Numbers b) { return _mm256_add_epi32(a, b); }
inline Numbers difference(Numbers a, Numbers b) { return _mm256_sub_epi32(a, b); }
inline Numbers common(Numbers a, Numbers b) { return _mm256_and_si256(a, b); }
inline Numbers most_of(Numbers a, Numbers b) { return _mm256_max_epi32(a, b); }
inline Numbers least_of(Numbers a, Numbers b) { return _mm256_min_epi32(a, b); }
using Mask = __mmask8;
inline Mask equal(Numbers a, Numbers b) { return _mm256_cmpeq_epi32_mask(a, b); }
inline Numbers chosen(Mask first, Numbers a, Numbers b) {
  return _mm256_mask_mov_epi32(b, first, a);
}
inline Floats chosen(Mask first, Floats a, Floats b) { return _mm256_mask_mov_ps(b, first, a); }
inline Floats floats_of(Numbers v) { return _mm256_cvtepi32_ps(v); }
inline Floats floats_of(Doubles v) { return _mm512_cvtpd_ps(v); }
inline Doubles doubles_of(Floats v) { return _mm512_cvtps_pd(v); }
inline Numbers cut_off(Doubles v) { return _mm512_cvttpd_epi32(v); }
inline Doubles whole_of(Doubles v) {
  return _mm512_roundscale_pd(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
inline Floats difference(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
inline Floats product(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
inline Floats quotient(Floats a, Floats b) { return _mm256_div_ps(a, b); }
inline Doubles sum(Doubles a, Doubles b) { return _mm512_add_pd(a, b); }
inline Doubles difference(Doubles a, Doubles b) { return _mm512_sub_pd(a, b); }
inline Doubles product(Doubles a, Doubles b) { return _mm512_mul_pd(a, b); }
inline Doubles quotient(Doubles a, Doubles b) { return _mm512_div_pd(a, b); }
inline Numbers looked_up(const int32_t* table, Numbers at) {
  return _mm256_i32gather_epi32(table, at, 4);
}
inline Floats looked_up(const float* table, Numbers at) {
  return _mm256_i32gather_ps(table, at, 4);
}
inline void store_bytes(uint8_t* to, Numbers v) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm256_cvtepi32_epi8(v));
}

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/color/pillow_hue_rows_loops.h"

namespace headrace {

TurnPillowHue pillow_hue_avx512() { return turn_pillow_hue; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
TurnPillowHue pillow_hue_avx512() { return nullptr; }
}  // namespace headrace

#endif
