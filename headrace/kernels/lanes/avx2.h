// SPDX-License-Identifier: Apache-2.0
// AVX2 and FMA: 8 numbers of 32 bits at a time, or 32 bytes as halves of 16 words ("low" and
// "high": of each group of 16 bytes). Names are taken from the Highway library where it has one.
// each_level.h chooses the level. Internal to kernels/.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace headrace::avx2 {
namespace {

using Floats = __m256;
using Ints = __m256i;
constexpr int kLanes = 8;

using Mask = __m256i;  // all bits of a lane

using Words = __m256i;  // independent of the lane type: bytes, words or 32-bit numbers
constexpr int kByteLanes = 32;

// As many lanes as a register holds doubles.
using Doubles = __m256d;
using Few = __m128i;
using FewFloats = __m128;
using FewMask = __m128i;
constexpr int kDoubles = 4;

}  // namespace
}  // namespace headrace::avx2

#define HEADRACE_MM(name) _mm256_##name
#define HEADRACE_SI(name) _mm256_##name##_si256
#include "headrace/kernels/lanes/x86.h"
#undef HEADRACE_MM
#undef HEADRACE_SI

namespace headrace::avx2 {
namespace {

inline Ints Load(const int32_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline void Store(int32_t* to, Ints v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }
inline Ints LoadBytesAsInts(const uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}
inline Floats LoadBytesAsFloats(const uint8_t* from) { return ToFloats(LoadBytesAsInts(from)); }

inline Ints Iota() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
inline Ints Gather(const int32_t* table, Ints at) { return _mm256_i32gather_epi32(table, at, 4); }

inline Floats Floor(Floats v) { return _mm256_floor_ps(v); }

inline Mask Eq(Ints a, Ints b) { return _mm256_cmpeq_epi32(a, b); }
inline Mask Lt(Ints a, Ints b) { return _mm256_cmpgt_epi32(b, a); }
inline Mask Eq(Floats a, Floats b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)); }
inline Mask Lt(Floats a, Floats b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
// Where a < b, restricted to `where`.
inline Mask MaskedLt(Mask where, Ints a, Ints b) { return And(where, Lt(a, b)); }
inline Mask Gt(Floats a, Floats b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GT_OQ)); }
inline Mask Ge(Floats a, Floats b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GE_OQ)); }
inline Ints IfThenElse(Mask where, Ints a, Ints otherwise) {
  return _mm256_blendv_epi8(otherwise, a, where);
}
inline Floats IfThenElse(Mask where, Floats a, Floats otherwise) {
  return _mm256_blendv_ps(otherwise, a, _mm256_castsi256_ps(where));
}
inline Floats IfThenElseZero(Mask where, Floats v) {
  return _mm256_and_ps(_mm256_castsi256_ps(where), v);
}
inline Table8 LoadTable8(const float* from) { return Load(from); }
inline Floats Lookup8(Table8 table, Ints at) { return _mm256_permutevar8x32_ps(table, at); }

// Clamps values below 0 and above 255: packing saturates.
inline void StoreAsBytes(uint8_t* to, Ints v) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
}
// Four in a row; the narrowing clamps them to 0 to 255.
inline void StoreClamped(uint8_t* to, const Ints (&v)[4]) {
  const __m256i low = _mm256_packs_epi32(v[0], v[1]), high = _mm256_packs_epi32(v[2], v[3]);
  const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), in_order);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
}
// Clamped to 0 to 255, then truncated.
inline void StoreTruncated(uint8_t* to, Floats v) {
  StoreAsBytes(to, _mm256_cvttps_epi32(_mm256_min_ps(v, Set(255.0f))));
}

// Rounded to the nearest, then clamped.
inline void StoreRounded(uint8_t* to, Floats v) { StoreAsBytes(to, _mm256_cvtps_epi32(v)); }

// 16 bytes as 32-bit numbers, and the upper bytes of 16 numbers.
inline void LoadSixteen(const uint8_t* from, Ints (&v)[2]) {
  v[0] = LoadBytesAsInts(from);
  v[1] = LoadBytesAsInts(from + 8);
}
inline void StoreSixteenUpperBytes(uint8_t* to, const Ints (&v)[2]) {
  const Ints words = _mm256_packus_epi32(ShiftRight<24>(v[0]), ShiftRight<24>(v[1]));
  const Ints in_order = _mm256_permute4x64_epi64(words, 0xd8);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(to),
      _mm_packus_epi16(_mm256_castsi256_si128(in_order), _mm256_extracti128_si256(in_order, 1)));
}

inline WideProduct WideMul(Ints a, Ints b) {
  const Ints even = _mm256_mul_epu32(a, b);
  const Ints odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), b);
  return {_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA),
          _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA)};
}
inline Ints Load(const uint32_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline Floats FromBits(Ints v) { return _mm256_castsi256_ps(v); }
inline void Store(uint32_t* to, Ints v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }

// Four numbers of each row, one row per lane: v[k] has the k-th of each row.
inline void LoadTransposed(const float* from, int64_t hop, Floats (&v)[4]) {
  for (int i = 0; i < 4; ++i) {
    const __m128 low = _mm_loadu_ps(from + i * hop), high = _mm_loadu_ps(from + (i + 4) * hop);
    v[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
  }
  transpose_quarters(v);
}
inline void StoreTransposed(Floats (&v)[4], int64_t hop, float* to) {
  transpose_quarters(v);
  for (int i = 0; i < 4; ++i) {
    _mm_storeu_ps(to + i * hop, _mm256_castps256_ps128(v[i]));
    _mm_storeu_ps(to + (i + 4) * hop, _mm256_extractf128_ps(v[i], 1));
  }
}

inline Words LoadBytes(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const Words*>(from));
}
inline void StoreBytes(uint8_t* to, Words bytes) {
  _mm256_storeu_si256(reinterpret_cast<Words*>(to), bytes);
}
// kByteLanes if no byte has this value.
inline int FindFirst(Words bytes, uint8_t value) {
  const Words same = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(static_cast<char>(value)));
  return static_cast<int>(_tzcnt_u32(static_cast<uint32_t>(_mm256_movemask_epi8(same))));
}
inline Words LoadBytesAsWords(const uint8_t* from) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline Ints LoadWordsAsInts(const uint16_t* from) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
// Words, saturated to 0 to 255.
inline void StoreWordsAsBytes(uint8_t* to, Words low, Words high) {
  _mm256_storeu_si256(reinterpret_cast<Words*>(to), _mm256_packus_epi16(low, high));
}

// Deinterleaves bytes to three planes: as many as fill a register of each, or, if the level has
// masked loads (kLoadsPart), only the remaining ones.
constexpr bool kLoadsPart = false;
// 16 bytes of plane c come from three vectors of 16 bytes: [vector][c], 0x80 where the byte is in
// another vector.
struct Gather3 {
  alignas(16) uint8_t shuffle[3][3][16];
};
constexpr Gather3 kGather3 = [] {
  Gather3 table{};
  for (int k = 0; k < 3; ++k) {
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < 16; ++i) {
        const int at = 3 * i + c - 16 * k;
        table.shuffle[k][c][i] = static_cast<uint8_t>(at >= 0 && at < 16 ? at : 0x80);
      }
    }
  }
  return table;
}();
inline void DeinterleaveBytes3(const uint8_t* from, int, uint8_t* const to[3]) {
  const auto half = [](const uint8_t* at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  };
  Words v[3];  // each 128-bit lane handles 16 samples
#pragma GCC unroll 4
  for (int k = 0; k < 3; ++k) {
    v[k] = _mm256_inserti128_si256(_mm256_castsi128_si256(half(from + 16 * k)),
                                   half(from + 48 + 16 * k), 1);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 3; ++c) {
    Words plane = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int k = 0; k < 3; ++k) {
      const Words shuffle = _mm256_broadcastsi128_si256(half(kGather3.shuffle[k][c]));
      plane = _mm256_or_si256(plane, _mm256_shuffle_epi8(v[k], shuffle));
    }
    StoreBytes(to[c], plane);
  }
}
inline Words ReverseBytes(Words v) {
  const Words reverse = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
  return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(v, reverse), 0x4e);
}

// Signed words of two registers, saturated to 0 to 255: interleaved, and concatenated.
inline void StoreInterleavedAsBytes(uint8_t* to, Words even, Words odd) {
  const Words in_turn = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
  StoreBytes(to, _mm256_shuffle_epi8(_mm256_packus_epi16(even, odd), in_turn));
}
inline void StoreInOrderAsBytes(uint8_t* to, Words left, Words right) {
  StoreBytes(to, _mm256_permute4x64_epi64(_mm256_packus_epi16(left, right), 0xd8));
}
// The same for 32-bit numbers.
inline void StoreInterleavedIntsAsBytes(uint8_t* to, Ints even, Ints odd) {
  const Words in_turn = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, -1, -1, -1, -1, -1, -1, -1, -1));
  const Words words = _mm256_packs_epi32(even, odd);
  const Words apart = _mm256_shuffle_epi8(_mm256_packus_epi16(words, words), in_turn);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm256_castsi256_si128(_mm256_permute4x64_epi64(apart, 0xf8)));
}
inline void StoreInOrderIntsAsBytes(uint8_t* to, Ints left, Ints right) {
  const Words words = _mm256_permute4x64_epi64(_mm256_packs_epi32(left, right), 0xd8);
  const Words apart = _mm256_packus_epi16(words, words);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm256_castsi256_si128(_mm256_permute4x64_epi64(apart, 0xf8)));
}

// Words with the odd bytes of `odd` and the even bytes of `even`.
inline Words OddEvenBytes(Words odd, Words even) {
  return _mm256_blendv_epi8(odd, even, SetWords(0x00ff));
}
// Two low halves and two high halves, in the order of the bytes that they were made from.
inline void StoreHalves(uint8_t* to, Words low, Words high) {
  StoreBytes(to, _mm256_permute2x128_si256(low, high, 0x20));
  StoreBytes(to + kByteLanes, _mm256_permute2x128_si256(low, high, 0x31));
}
// A row's bytes, and the bytes before and after each. Advances by one register at a time.
struct ByteNeighbors {
  explicit ByteNeighbors(const uint8_t*) {}
  void move_to(const uint8_t* at) {
    here = LoadBytes(at);
    before = LoadBytes(at - 1);
    after = LoadBytes(at + 1);
  }
  Words here, before, after;
};

inline Words WidenMulPairwiseAddTo(Words sum, Words a, Words b) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

// Gathers pixels by lanes of indices; and lanes of float64.

// Whether 0 <= v < end. REQUIRES: end > 0.
inline Mask InRange(Ints v, int end) {
  return _mm256_cmpeq_epi32(_mm256_min_epu32(v, Set(end - 1)), v);
}
inline Ints MaskedGatherOr(const uint32_t* from, Ints at, Mask where, Ints otherwise) {
  return _mm256_mask_i32gather_epi32(otherwise, reinterpret_cast<const int*>(from), at, where, 4);
}
inline __m256 four_pairs(const uint32_t* from, __m128i at, __m128i where) {
  return _mm256_castsi256_ps(_mm256_mask_i32gather_epi64(_mm256_setzero_si256(),
                                                         reinterpret_cast<const long long*>(from),
                                                         at, _mm256_cvtepi32_epi64(where), 4));
}
inline Ints in_order(__m256 v) {
  return _mm256_permute4x64_epi64(_mm256_castps_si256(v), _MM_SHUFFLE(3, 1, 2, 0));
}
// The pixel at each position, and the one after it. Black in lanes that are masked out.
inline void GatherPairs(const uint32_t* from, Ints at, Mask where, Ints& left, Ints& right) {
  const __m256 low = four_pairs(from, _mm256_castsi256_si128(at), _mm256_castsi256_si128(where));
  const __m256 high =
      four_pairs(from, _mm256_extracti128_si256(at, 1), _mm256_extracti128_si256(where, 1));
  left = in_order(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));
  right = in_order(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
}
// Shuffle that extracts this channel's byte from each pixel.
inline Ints picker(int channel) {
  const __m128i bytes = _mm_setr_epi8(0, -1, -1, -1, 4, -1, -1, -1, 8, -1, -1, -1, 12, -1, -1, -1);
  return _mm256_broadcastsi128_si256(_mm_or_si128(bytes, _mm_set1_epi32(channel)));
}
struct Pickers {
  Pickers() {
    for (int c = 0; c < 4; ++c) of[c] = picker(c);
  }
  Ints of[4];
};
inline Ints LoadDup128(const uint8_t* from) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline void StorePlane(uint8_t* to, Ints v) {
  const Ints order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  Store(reinterpret_cast<int32_t*>(to), _mm256_permutevar8x32_epi32(v, order));
}
inline Ints LoadPlane(const uint8_t* from) {
  const Ints order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
  return _mm256_permutevar8x32_epi32(Load(reinterpret_cast<const int32_t*>(from)), order);
}
inline Mask FirstN(int count) { return _mm256_cmpgt_epi32(Set(count), Iota()); }
inline bool AnyTrue(Mask where) { return !_mm256_testz_si256(where, where); }
inline Mask AndNot(Mask a, Mask b) { return _mm256_andnot_si256(a, b); }
inline bool NoneIsNaN(Floats v) {
  return _mm256_movemask_ps(_mm256_cmp_ps(v, v, _CMP_ORD_Q)) == 0xff;
}
inline Mask HasNoBits(Ints v, int bits) {
  return _mm256_cmpeq_epi32(_mm256_and_si256(v, Set(bits)), _mm256_setzero_si256());
}
// The lowest byte of each.
inline void StoreLowBytes(uint8_t* to, Ints v) { StoreAsBytes(to, LowBytes(v)); }

inline Few SetFew(int v) { return _mm_set1_epi32(v); }
inline Doubles IotaDoubles() { return _mm256_setr_pd(0, 1, 2, 3); }
inline Doubles Floor(Doubles v) { return _mm256_floor_pd(v); }
inline Floats ToFloats(Doubles low, Doubles high) {
  return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}
inline Ints Combine(Few low, Few high) { return _mm256_set_m128i(high, low); }
// Whether 0 <= v < end.
inline FewMask InRange(Doubles v, double end) {
  const Doubles inside = _mm256_and_pd(_mm256_cmp_pd(v, _mm256_setzero_pd(), _CMP_GE_OQ),
                                       _mm256_cmp_pd(v, Set(end), _CMP_LT_OQ));
  const __m256i pairs = _mm256_castpd_si256(inside);  // the upper half of each equals the lower
  return _mm256_castsi256_si128(
      _mm256_permutevar8x32_epi32(pairs, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6)));
}
inline FewMask And(FewMask a, FewMask b) { return _mm_and_si128(a, b); }
inline Few IfThenElse(FewMask where, Few a, Few otherwise) {
  return _mm_blendv_epi8(otherwise, a, where);
}
inline Few MaskedGatherOr(const uint32_t* from, Few at, FewMask where, Few otherwise) {
  return _mm_mask_i32gather_epi32(otherwise, reinterpret_cast<const int*>(from), at, where, 4);
}
inline Few Add(Few a, Few b) { return _mm_add_epi32(a, b); }
inline Few Mul(Few a, Few b) { return _mm_mullo_epi32(a, b); }
inline Few LowBytes(Few v, int shift) {
  return _mm_and_si128(_mm_srli_epi32(v, shift), SetFew(255));
}
inline void Store(int32_t* to, Few v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), v); }
inline void StoreLowBytes(uint8_t* to, Few v) {
  const __m128i packed = _mm_shuffle_epi8(
      v, _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
  const int bytes = _mm_cvtsi128_si32(packed);
  std::memcpy(to, &bytes, sizeof bytes);
}

inline Few LoadBytesAsFew(const uint8_t* from) {
  int32_t four;
  std::memcpy(&four, from, sizeof four);
  return _mm_cvtepu8_epi32(_mm_cvtsi32_si128(four));
}
inline Few Sub(Few a, Few b) { return _mm_sub_epi32(a, b); }
inline Few Max(Few a, Few b) { return _mm_max_epi32(a, b); }
inline Few Min(Few a, Few b) { return _mm_min_epi32(a, b); }
inline FewMask Eq(Few a, Few b) { return _mm_cmpeq_epi32(a, b); }
inline FewFloats IfThenElse(FewMask where, FewFloats a, FewFloats otherwise) {
  return _mm_blendv_ps(otherwise, a, _mm_castsi128_ps(where));
}
inline FewFloats ToFloats(Few v) { return _mm_cvtepi32_ps(v); }
inline Doubles Trunc(Doubles v) {
  return _mm256_round_pd(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
inline FewFloats Sub(FewFloats a, FewFloats b) { return _mm_sub_ps(a, b); }
inline FewFloats Mul(FewFloats a, FewFloats b) { return _mm_mul_ps(a, b); }
inline FewFloats Div(FewFloats a, FewFloats b) { return _mm_div_ps(a, b); }
inline Few Gather(const int32_t* table, Few at) { return _mm_i32gather_epi32(table, at, 4); }
inline FewFloats Gather(const float* table, Few at) { return _mm_i32gather_ps(table, at, 4); }

}  // namespace
}  // namespace headrace::avx2
