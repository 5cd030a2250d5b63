// SPDX-License-Identifier: Apache-2.0
// NEON: rows of bytes, 16 at a time, as halves of 8 numbers of 16 bits, in the words of
// word_lanes_avx2.h. Included by each file of this level, so that each compiles functions of its
// own. Internal to kernels/.
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace headrace {
namespace {

using Words = uint8x16_t;  // whatever the lanes are: bytes, words or numbers of 32 bits
constexpr int kByteLanes = 16;

inline Words words_from(uint16x8_t v) { return vreinterpretq_u8_u16(v); }
inline Words words_from(int16x8_t v) { return vreinterpretq_u8_s16(v); }
inline Words words_from(int32x4_t v) { return vreinterpretq_u8_s32(v); }
inline uint16x8_t unsigned_of(Words v) { return vreinterpretq_u16_u8(v); }
inline int16x8_t signed_of(Words v) { return vreinterpretq_s16_u8(v); }
inline int32x4_t numbers_of(Words v) { return vreinterpretq_s32_u8(v); }

inline Words bytes_at(const uint8_t* from) { return vld1q_u8(from); }
inline void store_bytes_of(uint8_t* to, Words bytes) { vst1q_u8(to, bytes); }
inline Words low_words(Words bytes) { return words_from(vmovl_u8(vget_low_u8(bytes))); }
inline Words high_words(Words bytes) { return words_from(vmovl_high_u8(bytes)); }
// Of words, cut to 0 to 255.
inline void store_saturated(uint8_t* to, Words low, Words high) {
  vst1q_u8(to, vqmovun_high_s16(vqmovun_s16(signed_of(low)), signed_of(high)));
}

inline Words words_sum(Words a, Words b) {
  return words_from(vaddq_u16(unsigned_of(a), unsigned_of(b)));
}
inline Words words_difference(Words a, Words b) {
  return words_from(vsubq_u16(unsigned_of(a), unsigned_of(b)));
}
template <int bits>
Words words_up(Words v) {
  return words_from(vshlq_n_u16(unsigned_of(v), bits));
}
template <int bits>
Words words_down(Words v) {
  return words_from(vshrq_n_u16(unsigned_of(v), bits));
}
// The upper 16 bits of products without signs.
inline Words high_product(Words a, Words b) {
  const uint16x8_t x = unsigned_of(a), y = unsigned_of(b);
  return words_from(vuzp2q_u16(vreinterpretq_u16_u32(vmull_u16(vget_low_u16(x), vget_low_u16(y))),
                               vreinterpretq_u16_u32(vmull_high_u16(x, y))));
}
inline Words all_words(int v) { return words_from(vdupq_n_s16(static_cast<int16_t>(v))); }

// Bytes and words at even and at odd places.
inline Words even_bytes(Words bytes) { return vandq_u8(bytes, all_words(0xff)); }
inline Words odd_bytes(Words bytes) { return words_from(vshrq_n_u16(unsigned_of(bytes), 8)); }
inline Words together(Words even, Words odd) {
  return words_from(vsliq_n_u16(unsigned_of(even), unsigned_of(odd), 8));
}
// Sums of two neighbours, each times its weight of one byte (all_bytes).
inline Words dot_of_bytes(Words bytes, Words weights) {
  const int16x8_t even = vshrq_n_s16(vshlq_n_s16(signed_of(weights), 8), 8);
  const int16x8_t odd = vshrq_n_s16(signed_of(weights), 8);
  return words_from(
      vmlaq_s16(vmulq_s16(signed_of(even_bytes(bytes)), even), signed_of(odd_bytes(bytes)), odd));
}
inline Words all_bytes(int even, int odd) { return all_words(even | odd << 8); }

// Words of a and of b in turn,
inline Words paired_low(Words a, Words b) {
  return words_from(vzip1q_u16(unsigned_of(a), unsigned_of(b)));
}
inline Words paired_high(Words a, Words b) {
  return words_from(vzip2q_u16(unsigned_of(a), unsigned_of(b)));
}
// their products with other such pairs, added up as numbers of 32 bits,
inline Words dot_of_pairs(Words a, Words b) {
  const int16x8_t x = signed_of(a), y = signed_of(b);
  return words_from(vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y)));
}
inline Words all_numbers(int v) { return words_from(vdupq_n_s32(v)); }
inline Words all_pairs(int first, int second) {
  return all_numbers((first & 0xffff) | static_cast<int>(static_cast<uint32_t>(second) << 16));
}
inline Words numbers_sum(Words a, Words b) {
  return words_from(vaddq_s32(numbers_of(a), numbers_of(b)));
}
// with their signs,
template <int bits>
Words numbers_down(Words v) {
  return words_from(vshrq_n_s32(numbers_of(v), bits));
}
// and words of them again, cut to what these hold.
inline Words words_of(Words low, Words high) {
  return words_from(vqmovn_high_s32(vqmovn_s32(numbers_of(low)), numbers_of(high)));
}

}  // namespace
}  // namespace headrace
