// SPDX-License-Identifier: Apache-2.0
// AVX2 and FMA: 8 numbers of a row of bytes at a time, as 32 bits. Included by each file of
// this level between its target pragmas, after all other includes, so that each compiles functions
// of its own; the loops that are written with them (..._loops.h) are the same for both levels.
// Internal to kernels/.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace headrace {
namespace {

using Floats = __m256;
using Numbers = __m256i;
constexpr int kLanes = 8;

inline Numbers load(const int32_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline void store(int32_t* to, Numbers v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v);
}
inline Numbers numbers_at(const uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}
inline Floats floats_of(Numbers v) { return _mm256_cvtepi32_ps(v); }
inline Floats floats_at(const uint8_t* from) { return floats_of(numbers_at(from)); }
inline Floats load(const float* from) { return _mm256_loadu_ps(from); }
inline void store(float* to, Floats v) { _mm256_storeu_ps(to, v); }

inline Floats all(float v) { return _mm256_set1_ps(v); }
inline Numbers all(int v) { return _mm256_set1_epi32(v); }
inline Numbers lane_numbers() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
inline Numbers sum(Numbers a, Numbers b) { return _mm256_add_epi32(a, b); }
inline Numbers difference(Numbers a, Numbers b) { return _mm256_sub_epi32(a, b); }
inline Numbers product(Numbers a, Numbers b) { return _mm256_mullo_epi32(a, b); }
inline Numbers most_of(Numbers a, Numbers b) { return _mm256_max_epi32(a, b); }
inline Numbers least_of(Numbers a, Numbers b) { return _mm256_min_epi32(a, b); }
inline Numbers common(Numbers a, Numbers b) { return _mm256_and_si256(a, b); }
inline Numbers joined(Numbers a, Numbers b) { return _mm256_or_si256(a, b); }
inline Numbers differing(Numbers a, Numbers b) { return _mm256_xor_si256(a, b); }
template <int bits>
Numbers shifted_down(Numbers v) {
  return _mm256_srli_epi32(v, bits);
}
template <int bits>
Numbers shifted_down_signed(Numbers v) {
  return _mm256_srai_epi32(v, bits);
}
inline Numbers to_bytes(Numbers v) { return most_of(least_of(v, all(255)), all(0)); }
inline Numbers looked_up(const int32_t* table, Numbers at) {
  return _mm256_i32gather_epi32(table, at, 4);
}

inline Floats sum(Floats a, Floats b) { return _mm256_add_ps(a, b); }
inline Floats difference(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
inline Floats product(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
inline Floats quotient(Floats a, Floats b) { return _mm256_div_ps(a, b); }
// a * b + c, rounded once
inline Floats fused(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
// The second where one is NaN.
inline Floats least_of(Floats a, Floats b) { return _mm256_min_ps(a, b); }
inline Floats most_of(Floats a, Floats b) { return _mm256_max_ps(a, b); }
inline Floats floor_of(Floats v) { return _mm256_floor_ps(v); }
inline Numbers cut_off(Floats v) { return _mm256_cvttps_epi32(v); }

// Which lanes: all bits of each.
using Mask = __m256i;
inline Mask equal(Numbers a, Numbers b) { return _mm256_cmpeq_epi32(a, b); }
inline Mask below(Numbers a, Numbers b) { return _mm256_cmpgt_epi32(b, a); }
inline Mask above(Floats a, Floats b) {
  return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GT_OQ));
}
inline Mask at_least(Floats a, Floats b) {
  return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GE_OQ));
}
inline Mask both(Mask a, Mask b) { return _mm256_and_si256(a, b); }
inline Numbers chosen(Mask where, Numbers a, Numbers otherwise) {
  return _mm256_blendv_epi8(otherwise, a, where);
}
inline Floats chosen(Mask where, Floats a, Floats otherwise) {
  return _mm256_blendv_ps(otherwise, a, _mm256_castsi256_ps(where));
}

// Below 0 and above 255 they are cut to these: packing saturates.
inline void store_bytes(uint8_t* to, Numbers v) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
}
// Four in a row, clamped to 0 to 255 by what narrows them.
inline void store_clamped(uint8_t* to, const Numbers (&v)[4]) {
  const __m256i low = _mm256_packs_epi32(v[0], v[1]), high = _mm256_packs_epi32(v[2], v[3]);
  const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), in_order);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
}
// Clamped to 0 to 255, then cut off.
inline void store_cut_off(uint8_t* to, Floats v) {
  store_bytes(to, _mm256_cvttps_epi32(_mm256_min_ps(v, all(255.0f))));
}

// Rounded to the nearest, then clamped.
inline void store_rounded(uint8_t* to, Floats v) { store_bytes(to, _mm256_cvtps_epi32(v)); }

}  // namespace
}  // namespace headrace
