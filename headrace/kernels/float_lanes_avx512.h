// SPDX-License-Identifier: Apache-2.0
// AVX-512: 16 numbers of a row of bytes at a time, as 32 bits. Included by each file of
// this level between its target pragmas, after all other includes, so that each compiles functions
// of its own; the loops that are written with them (..._loops.h) are the same for both levels.
// Internal to kernels/.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace headrace {
namespace {

using Floats = __m512;
using Numbers = __m512i;
constexpr int kLanes = 16;

inline Numbers load(const int32_t* from) { return _mm512_loadu_si512(from); }
inline void store(int32_t* to, Numbers v) { _mm512_storeu_si512(to, v); }
inline Numbers numbers_at(const uint8_t* from) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline Floats floats_of(Numbers v) { return _mm512_cvtepi32_ps(v); }
inline Floats floats_at(const uint8_t* from) { return floats_of(numbers_at(from)); }
inline Floats load(const float* from) { return _mm512_loadu_ps(from); }
inline void store(float* to, Floats v) { _mm512_storeu_ps(to, v); }

inline Floats all(float v) { return _mm512_set1_ps(v); }
inline Numbers all(int v) { return _mm512_set1_epi32(v); }
inline Numbers lane_numbers() {
  return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
inline Numbers sum(Numbers a, Numbers b) { return _mm512_add_epi32(a, b); }
inline Numbers difference(Numbers a, Numbers b) { return _mm512_sub_epi32(a, b); }
inline Numbers product(Numbers a, Numbers b) { return _mm512_mullo_epi32(a, b); }
inline Numbers most_of(Numbers a, Numbers b) { return _mm512_max_epi32(a, b); }
inline Numbers least_of(Numbers a, Numbers b) { return _mm512_min_epi32(a, b); }
inline Numbers common(Numbers a, Numbers b) { return _mm512_and_si512(a, b); }
inline Numbers joined(Numbers a, Numbers b) { return _mm512_or_si512(a, b); }
inline Numbers differing(Numbers a, Numbers b) { return _mm512_xor_si512(a, b); }
template <int bits>
Numbers shifted_down(Numbers v) {
  return _mm512_srli_epi32(v, bits);
}
template <int bits>
Numbers shifted_down_signed(Numbers v) {
  return _mm512_srai_epi32(v, bits);
}
inline Numbers to_bytes(Numbers v) { return most_of(least_of(v, all(255)), all(0)); }
inline Numbers looked_up(const int32_t* table, Numbers at) {
  return _mm512_i32gather_epi32(at, table, 4);
}

inline Floats sum(Floats a, Floats b) { return _mm512_add_ps(a, b); }
inline Floats difference(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
inline Floats product(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
inline Floats quotient(Floats a, Floats b) { return _mm512_div_ps(a, b); }
// a * b + c, rounded once
inline Floats fused(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
// The second where one is NaN.
inline Floats least_of(Floats a, Floats b) { return _mm512_min_ps(a, b); }
inline Floats most_of(Floats a, Floats b) { return _mm512_max_ps(a, b); }
inline Floats floor_of(Floats v) {
  return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
inline Numbers cut_off(Floats v) { return _mm512_cvttps_epi32(v); }

// Which lanes: a bit of each.
using Mask = __mmask16;
inline Mask equal(Numbers a, Numbers b) { return _mm512_cmpeq_epi32_mask(a, b); }
inline Mask below(Numbers a, Numbers b) { return _mm512_cmplt_epi32_mask(a, b); }
inline Mask above(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
inline Mask at_least(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
inline Mask both(Mask a, Mask b) { return _kand_mask16(a, b); }
inline Numbers chosen(Mask where, Numbers a, Numbers otherwise) {
  return _mm512_mask_mov_epi32(otherwise, where, a);
}
inline Floats chosen(Mask where, Floats a, Floats otherwise) {
  return _mm512_mask_mov_ps(otherwise, where, a);
}

inline void store_bytes(uint8_t* to, Numbers v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(v));
}
// Four in a row, clamped to 0 to 255 by what narrows them.
inline void store_clamped(uint8_t* to, const Numbers (&v)[4]) {
  const __m512i low = _mm512_packs_epi32(v[0], v[1]), high = _mm512_packs_epi32(v[2], v[3]);
  const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  _mm512_storeu_si512(to, _mm512_permutexvar_epi32(in_order, _mm512_packus_epi16(low, high)));
}
// Clamped to 0 to 255, then cut off.
inline void store_cut_off(uint8_t* to, Floats v) {
  v = _mm512_max_ps(_mm512_min_ps(v, all(255.0f)), _mm512_setzero_ps());
  store_bytes(to, _mm512_cvttps_epi32(v));
}

// Rounded to the nearest, then clamped.
inline void store_rounded(uint8_t* to, Floats v) {
  const Numbers numbers = _mm512_max_epi32(_mm512_cvtps_epi32(v), _mm512_setzero_si512());
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtusepi32_epi8(numbers));
}

}  // namespace
}  // namespace headrace
