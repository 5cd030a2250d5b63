// SPDX-License-Identifier: Apache-2.0
// NEON: 4 numbers of 32 bits at a time, or 16 bytes as halves of 8 words. Names are taken from the
// Highway library where it has one. each_level.h chooses the level. Internal to kernels/.
#pragma once

#include <arm_neon.h>

#include <bit>
#include <cstdint>
#include <cstring>

namespace headrace::neon {
namespace {

using Floats = float32x4_t;
using Ints = int32x4_t;
constexpr int kLanes = 4;

inline Ints Load(const int32_t* from) { return vld1q_s32(from); }
inline void Store(int32_t* to, Ints v) { vst1q_s32(to, v); }
inline Ints LoadBytesAsInts(const uint8_t* from) {
  uint32_t four;
  std::memcpy(&four, from, sizeof four);
  const uint16x8_t words = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
  return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(words)));
}
inline Floats ToFloats(Ints v) { return vcvtq_f32_s32(v); }
inline Floats LoadBytesAsFloats(const uint8_t* from) { return ToFloats(LoadBytesAsInts(from)); }
inline Floats Load(const float* from) { return vld1q_f32(from); }
inline void Store(float* to, Floats v) { vst1q_f32(to, v); }

inline Floats Set(float v) { return vdupq_n_f32(v); }
inline Ints Set(int v) { return vdupq_n_s32(v); }
inline Ints Iota() { return Ints{0, 1, 2, 3}; }
inline Ints Add(Ints a, Ints b) { return vaddq_s32(a, b); }
inline Ints Sub(Ints a, Ints b) { return vsubq_s32(a, b); }
inline Ints Mul(Ints a, Ints b) { return vmulq_s32(a, b); }
inline Ints Max(Ints a, Ints b) { return vmaxq_s32(a, b); }
inline Ints Min(Ints a, Ints b) { return vminq_s32(a, b); }
inline Ints And(Ints a, Ints b) { return vandq_s32(a, b); }
inline Ints Or(Ints a, Ints b) { return vorrq_s32(a, b); }
inline Ints Xor(Ints a, Ints b) { return veorq_s32(a, b); }
template <int bits>
Ints ShiftRight(Ints v) {
  return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(v), bits));
}
template <int bits>
Ints ShiftRightSigned(Ints v) {
  return vshrq_n_s32(v, bits);
}
inline Ints ClampToBytes(Ints v) { return Max(Min(v, Set(255)), Set(0)); }
inline Ints Gather(const int32_t* table, Ints at) {
  return Ints{table[at[0]], table[at[1]], table[at[2]], table[at[3]]};
}

inline Floats Add(Floats a, Floats b) { return vaddq_f32(a, b); }
inline Floats Sub(Floats a, Floats b) { return vsubq_f32(a, b); }
inline Floats Mul(Floats a, Floats b) { return vmulq_f32(a, b); }
inline Floats Div(Floats a, Floats b) { return vdivq_f32(a, b); }
// a * b + c, rounded once
inline Floats MulAdd(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }
// c - a * b, rounded once
inline Floats NegMulAdd(Floats a, Floats b, Floats c) { return vfmsq_f32(c, a, b); }
// Returns the second operand if one is NaN, which FMIN and FMAX would not.
inline Floats Min(Floats a, Floats b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
inline Floats Max(Floats a, Floats b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
inline Floats Floor(Floats v) { return vrndmq_f32(v); }
inline Ints TruncToInts(Floats v) { return vcvtq_s32_f32(v); }

// A mask of lanes: all bits of each.
using Mask = uint32x4_t;
inline Mask Eq(Ints a, Ints b) { return vceqq_s32(a, b); }
inline Mask Lt(Ints a, Ints b) { return vcltq_s32(a, b); }
inline Mask Eq(Floats a, Floats b) { return vceqq_f32(a, b); }
inline Mask Lt(Floats a, Floats b) { return vcltq_f32(a, b); }
inline Mask Gt(Floats a, Floats b) { return vcgtq_f32(a, b); }
inline Mask Ge(Floats a, Floats b) { return vcgeq_f32(a, b); }
inline Mask And(Mask a, Mask b) { return vandq_u32(a, b); }
inline Ints IfThenElse(Mask where, Ints a, Ints otherwise) {
  return vbslq_s32(where, a, otherwise);
}
inline Floats IfThenElse(Mask where, Floats a, Floats otherwise) {
  return vbslq_f32(where, a, otherwise);
}
inline Floats IfThenElseZero(Mask where, Floats v) {
  return vreinterpretq_f32_u32(vandq_u32(where, vreinterpretq_u32_f32(v)));
}
// Entries of a table of eight, at indices 0 to 7.
using Table8 = uint8x16x2_t;
inline Table8 LoadTable8(const float* from) {
  return {{vreinterpretq_u8_f32(Load(from)), vreinterpretq_u8_f32(Load(from + 4))}};
}
inline Floats Lookup8(const Table8& table, Ints at) {
  const uint32x4_t first = vmulq_n_u32(vreinterpretq_u32_s32(at), 0x04040404);
  const uint8x16_t bytes = vreinterpretq_u8_u32(vaddq_u32(first, vdupq_n_u32(0x03020100)));
  return vreinterpretq_f32_u8(vqtbl2q_u8(table, bytes));
}

// Clamps values below 0 and above 255: narrowing saturates.
inline void StoreAsBytes(uint8_t* to, Ints v) {
  const uint16x4_t words = vqmovun_s32(v);
  const uint8x8_t bytes = vqmovn_u16(vcombine_u16(words, words));
  const uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
  std::memcpy(to, &four, sizeof four);
}
// Four in a row; the narrowing clamps them to 0 to 255.
inline void StoreClamped(uint8_t* to, const Ints (&v)[4]) {
  const uint16x8_t low = vqmovun_high_s32(vqmovun_s32(v[0]), v[1]);
  const uint16x8_t high = vqmovun_high_s32(vqmovun_s32(v[2]), v[3]);
  vst1q_u8(to, vqmovn_high_u16(vqmovn_u16(low), high));
}
// Clamped to 0 to 255, then truncated.
inline void StoreTruncated(uint8_t* to, Floats v) { StoreAsBytes(to, vcvtq_s32_f32(v)); }
// Rounded to the nearest, then clamped.
inline void StoreRounded(uint8_t* to, Floats v) { StoreAsBytes(to, vcvtnq_s32_f32(v)); }

// 16 bytes as 32-bit numbers, and the upper bytes of 16 numbers.
inline void LoadSixteen(const uint8_t* from, Ints (&v)[4]) {
  const uint8x16_t bytes = vld1q_u8(from);
  const uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_high_u8(bytes);
  v[0] = vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low)));
  v[1] = vreinterpretq_s32_u32(vmovl_high_u16(low));
  v[2] = vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high)));
  v[3] = vreinterpretq_s32_u32(vmovl_high_u16(high));
}
inline void StoreSixteenUpperBytes(uint8_t* to, const Ints (&v)[4]) {
  const auto upper = [](Ints two_bytes) {
    return vshrn_n_u32(vreinterpretq_u32_s32(two_bytes), 16);
  };
  const uint16x8_t low = vcombine_u16(upper(v[0]), upper(v[1]));
  const uint16x8_t high = vcombine_u16(upper(v[2]), upper(v[3]));
  vst1q_u8(to, vcombine_u8(vshrn_n_u16(low, 8), vshrn_n_u16(high, 8)));
}

// Both halves of the unsigned products.
struct WideProduct {
  Ints high, low;
};
inline WideProduct WideMul(Ints a, Ints b) {
  const uint32x4_t x = vreinterpretq_u32_s32(a), y = vreinterpretq_u32_s32(b);
  const int32x4_t low = vreinterpretq_s32_u64(vmull_u32(vget_low_u32(x), vget_low_u32(y)));
  const int32x4_t high = vreinterpretq_s32_u64(vmull_high_u32(x, y));
  return {vuzp2q_s32(low, high), vuzp1q_s32(low, high)};
}
inline Ints Load(const uint32_t* from) { return vreinterpretq_s32_u32(vld1q_u32(from)); }
inline Ints BitsOf(Floats v) { return vreinterpretq_s32_f32(v); }
inline Floats FromBits(Ints v) { return vreinterpretq_f32_s32(v); }
inline Floats Sqrt(Floats v) { return vsqrtq_f32(v); }
inline void Store(uint32_t* to, Ints v) { vst1q_u32(to, vreinterpretq_u32_s32(v)); }

inline void transpose_quarters(Floats (&v)[4]) {
  const float32x4_t even01 = vtrn1q_f32(v[0], v[1]), odd01 = vtrn2q_f32(v[0], v[1]);
  const float32x4_t even23 = vtrn1q_f32(v[2], v[3]), odd23 = vtrn2q_f32(v[2], v[3]);
  v[0] = vcombine_f32(vget_low_f32(even01), vget_low_f32(even23));
  v[1] = vcombine_f32(vget_low_f32(odd01), vget_low_f32(odd23));
  v[2] = vcombine_f32(vget_high_f32(even01), vget_high_f32(even23));
  v[3] = vcombine_f32(vget_high_f32(odd01), vget_high_f32(odd23));
}
// Four numbers of each row, one row per lane: v[k] has the k-th of each row.
inline void LoadTransposed(const float* from, int64_t hop, Floats (&v)[4]) {
  for (int i = 0; i < 4; ++i) v[i] = Load(from + i * hop);
  transpose_quarters(v);
}
inline void StoreTransposed(Floats (&v)[4], int64_t hop, float* to) {
  transpose_quarters(v);
  for (int i = 0; i < 4; ++i) Store(to + i * hop, v[i]);
}

using Words = uint8x16_t;  // independent of the lane type: bytes, words or 32-bit numbers
constexpr int kByteLanes = 16;

inline Words words_from(uint16x8_t v) { return vreinterpretq_u8_u16(v); }
inline Words words_from(int16x8_t v) { return vreinterpretq_u8_s16(v); }
inline Words words_from(int32x4_t v) { return vreinterpretq_u8_s32(v); }
inline uint16x8_t unsigned_of(Words v) { return vreinterpretq_u16_u8(v); }
inline int16x8_t signed_of(Words v) { return vreinterpretq_s16_u8(v); }
inline int32x4_t numbers_of(Words v) { return vreinterpretq_s32_u8(v); }

inline Words LoadBytes(const uint8_t* from) { return vld1q_u8(from); }
inline void StoreBytes(uint8_t* to, Words bytes) { vst1q_u8(to, bytes); }
// kByteLanes if no byte has this value.
inline int FindFirst(Words bytes, uint8_t value) {
  // Four bits per byte, because one instruction narrows to that.
  const uint8x8_t same = vshrn_n_u16(unsigned_of(vceqq_u8(bytes, vdupq_n_u8(value))), 4);
  return std::countr_zero(vget_lane_u64(vreinterpret_u64_u8(same), 0)) / 4;
}
inline Words LowWords(Words bytes) { return words_from(vmovl_u8(vget_low_u8(bytes))); }
inline Words HighWords(Words bytes) { return words_from(vmovl_high_u8(bytes)); }
inline Words MinBytes(Words a, Words b) { return vminq_u8(a, b); }
inline Words MaxBytes(Words a, Words b) { return vmaxq_u8(a, b); }
// Words, saturated to 0 to 255.
inline void StoreWordsAsBytes(uint8_t* to, Words low, Words high) {
  vst1q_u8(to, vqmovun_high_s16(vqmovun_s16(signed_of(low)), signed_of(high)));
}

// Deinterleaves bytes to three planes: as many as fill a register of each, or, if the level has
// masked loads (kLoadsPart), only the remaining ones.
constexpr bool kLoadsPart = false;
inline void DeinterleaveBytes3(const uint8_t* from, int, uint8_t* const to[3]) {
  const uint8x16x3_t three = vld3q_u8(from);
  for (int c = 0; c < 3; ++c) StoreBytes(to[c], three.val[c]);
}
inline Words ReverseBytes(Words v) {
  const uint8x16_t halves = vrev64q_u8(v);
  return vextq_u8(halves, halves, 8);
}

inline Words AddWords(Words a, Words b) {
  return words_from(vaddq_u16(unsigned_of(a), unsigned_of(b)));
}
inline Words SubWords(Words a, Words b) {
  return words_from(vsubq_u16(unsigned_of(a), unsigned_of(b)));
}
template <int bits>
Words ShiftLeftWords(Words v) {
  return words_from(vshlq_n_u16(unsigned_of(v), bits));
}
template <int bits>
Words ShiftRightWords(Words v) {
  return words_from(vshrq_n_u16(unsigned_of(v), bits));
}
// The upper 16 bits of unsigned products.
inline Words MulHighWords(Words a, Words b) {
  const uint16x8_t x = unsigned_of(a), y = unsigned_of(b);
  return words_from(vuzp2q_u16(vreinterpretq_u16_u32(vmull_u16(vget_low_u16(x), vget_low_u16(y))),
                               vreinterpretq_u16_u32(vmull_high_u16(x, y))));
}
inline Words SetWords(int v) { return words_from(vdupq_n_s16(static_cast<int16_t>(v))); }

// Bytes and words at even and at odd positions.
inline Words EvenBytes(Words bytes) { return vandq_u8(bytes, SetWords(0xff)); }
inline Words OddBytes(Words bytes) { return words_from(vshrq_n_u16(unsigned_of(bytes), 8)); }
inline Words InterleaveBytes(Words even, Words odd) {
  return words_from(vsliq_n_u16(unsigned_of(even), unsigned_of(odd), 8));
}
// Sums of two neighbors, each multiplied by its one-byte weight (all_bytes).
inline Words MulPairwiseAddBytes(Words bytes, Words weights) {
  const int16x8_t even = vshrq_n_s16(vshlq_n_s16(signed_of(weights), 8), 8);
  const int16x8_t odd = vshrq_n_s16(signed_of(weights), 8);
  return words_from(
      vmlaq_s16(vmulq_s16(signed_of(EvenBytes(bytes)), even), signed_of(OddBytes(bytes)), odd));
}
inline Words SetBytePairs(int even, int odd) { return SetWords(even | odd << 8); }

// The words of a and b, interleaved.
inline Words InterleaveLowWords(Words a, Words b) {
  return words_from(vzip1q_u16(unsigned_of(a), unsigned_of(b)));
}
inline Words InterleaveHighWords(Words a, Words b) {
  return words_from(vzip2q_u16(unsigned_of(a), unsigned_of(b)));
}
// Dot products of pairs of words, as 32-bit sums.
inline Words WidenMulPairwiseAdd(Words a, Words b) {
  const int16x8_t x = signed_of(a), y = signed_of(b);
  return words_from(vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y)));
}
inline Words SetInts(int v) { return words_from(vdupq_n_s32(v)); }
inline Words SetWordPairs(int first, int second) {
  return SetInts((first & 0xffff) | static_cast<int>(static_cast<uint32_t>(second) << 16));
}
inline Words AddInts(Words a, Words b) {
  return words_from(vaddq_s32(numbers_of(a), numbers_of(b)));
}
// Arithmetic right shift of 32-bit numbers.
template <int bits>
Words ShiftRightInts(Words v) {
  return words_from(vshrq_n_s32(numbers_of(v), bits));
}
// Packs 32-bit numbers to words, saturated.
inline Words DemoteToWords(Words low, Words high) {
  return words_from(vqmovn_high_s32(vqmovn_s32(numbers_of(low)), numbers_of(high)));
}

}  // namespace
}  // namespace headrace::neon
