// SPDX-License-Identifier: Apache-2.0
// AVX-512: rows of bytes, 64 at a time, as halves of 32 numbers of 16 bits ("low" and "high": of
// each group of 16 bytes). Included by each file of this level between its target pragmas, after
// all other includes, so that each compiles functions of its own. Internal to kernels/.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace headrace {
namespace {

using Words = __m512i;  // whatever the lanes are: bytes, words or numbers of 32 bits
constexpr int kByteLanes = 64;

inline Words bytes_at(const uint8_t* from) { return _mm512_loadu_si512(from); }
inline void store_bytes_of(uint8_t* to, Words bytes) { _mm512_storeu_si512(to, bytes); }
inline Words low_words(Words bytes) { return _mm512_unpacklo_epi8(bytes, _mm512_setzero_si512()); }
inline Words high_words(Words bytes) { return _mm512_unpackhi_epi8(bytes, _mm512_setzero_si512()); }
// Of words, cut to 0 to 255.
inline void store_saturated(uint8_t* to, Words low, Words high) {
  _mm512_storeu_si512(to, _mm512_packus_epi16(low, high));
}

inline Words words_sum(Words a, Words b) { return _mm512_add_epi16(a, b); }
inline Words words_difference(Words a, Words b) { return _mm512_sub_epi16(a, b); }
template <int bits>
Words words_up(Words v) {
  return _mm512_slli_epi16(v, bits);
}
template <int bits>
Words words_down(Words v) {
  return _mm512_srli_epi16(v, bits);
}
// The upper 16 bits of products without signs.
inline Words high_product(Words a, Words b) { return _mm512_mulhi_epu16(a, b); }
inline Words all_words(int v) { return _mm512_set1_epi16(static_cast<int16_t>(v)); }

// Bytes and words at even and at odd places.
inline Words even_bytes(Words bytes) { return _mm512_and_si512(bytes, all_words(0xff)); }
inline Words odd_bytes(Words bytes) { return _mm512_srli_epi16(bytes, 8); }
inline Words together(Words even, Words odd) {
  return _mm512_or_si512(even, _mm512_slli_epi16(odd, 8));
}
// Sums of two neighbours, each times its weight of one byte (all_bytes).
inline Words dot_of_bytes(Words bytes, Words weights) {
  return _mm512_maddubs_epi16(bytes, weights);
}
inline Words all_bytes(int even, int odd) { return all_words(even | odd << 8); }

// Words of a and of b in turn,
inline Words paired_low(Words a, Words b) { return _mm512_unpacklo_epi16(a, b); }
inline Words paired_high(Words a, Words b) { return _mm512_unpackhi_epi16(a, b); }
// their products with other such pairs, added up as numbers of 32 bits,
inline Words dot_of_pairs(Words a, Words b) { return _mm512_madd_epi16(a, b); }
inline Words all_pairs(int first, int second) {
  return _mm512_set1_epi32(first | static_cast<int>(static_cast<uint32_t>(second) << 16));
}
inline Words all_numbers(int v) { return _mm512_set1_epi32(v); }
inline Words numbers_sum(Words a, Words b) { return _mm512_add_epi32(a, b); }
// with their signs,
template <int bits>
Words numbers_down(Words v) {
  return _mm512_srai_epi32(v, bits);
}
// and words of them again, cut to what these hold.
inline Words words_of(Words low, Words high) { return _mm512_packs_epi32(low, high); }

}  // namespace
}  // namespace headrace
