// SPDX-License-Identifier: Apache-2.0
// AVX-512: 16 numbers of 32 bits at a time, or 64 bytes as halves of 32 words ("low" and "high": of
// each group of 16 bytes). Names are taken from the Highway library where it has one. each_level.h
// chooses the level. Internal to kernels/.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace headrace::avx512 {
namespace {

using Floats = __m512;
using Ints = __m512i;
constexpr int kLanes = 16;

using Mask = __mmask16;  // one bit per lane

using Words = __m512i;  // independent of the lane type: bytes, words or 32-bit numbers
constexpr int kByteLanes = 64;

// As many lanes as a register holds doubles.
using Doubles = __m512d;
using Few = __m256i;
using FewFloats = __m256;
using FewMask = __mmask8;
constexpr int kDoubles = 8;

}  // namespace
}  // namespace headrace::avx512

#define HEADRACE_MM(name) _mm512_##name
#define HEADRACE_SI(name) _mm512_##name##_si512
#include "headrace/kernels/lanes/x86.h"
#undef HEADRACE_MM
#undef HEADRACE_SI

namespace headrace::avx512 {
namespace {

inline Ints Load(const int32_t* from) { return _mm512_loadu_si512(from); }
inline void Store(int32_t* to, Ints v) { _mm512_storeu_si512(to, v); }
inline Ints LoadBytesAsInts(const uint8_t* from) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline Floats LoadBytesAsFloats(const uint8_t* from) { return ToFloats(LoadBytesAsInts(from)); }

inline Ints Iota() {
  return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
inline Ints Gather(const int32_t* table, Ints at) { return _mm512_i32gather_epi32(at, table, 4); }

inline Floats Floor(Floats v) {
  return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

inline Mask Eq(Ints a, Ints b) { return _mm512_cmpeq_epi32_mask(a, b); }
inline Mask Lt(Ints a, Ints b) { return _mm512_cmplt_epi32_mask(a, b); }
inline Mask Eq(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
inline Mask Lt(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
inline Mask Gt(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
inline Mask Ge(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
inline Mask And(Mask a, Mask b) { return _kand_mask16(a, b); }
// Where a < b, restricted to `where`.
inline Mask MaskedLt(Mask where, Ints a, Ints b) {
  return _mm512_mask_cmplt_epi32_mask(where, a, b);
}
inline Ints IfThenElse(Mask where, Ints a, Ints otherwise) {
  return _mm512_mask_mov_epi32(otherwise, where, a);
}
inline Floats IfThenElse(Mask where, Floats a, Floats otherwise) {
  return _mm512_mask_mov_ps(otherwise, where, a);
}
inline Floats IfThenElseZero(Mask where, Floats v) { return _mm512_maskz_mov_ps(where, v); }
inline Table8 LoadTable8(const float* from) { return _mm512_maskz_loadu_ps(0xff, from); }
inline Floats Lookup8(Table8 table, Ints at) { return _mm512_permutexvar_ps(at, table); }

inline void StoreAsBytes(uint8_t* to, Ints v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(v));
}
// Four in a row; the narrowing clamps them to 0 to 255.
inline void StoreClamped(uint8_t* to, const Ints (&v)[4]) {
  const __m512i low = _mm512_packs_epi32(v[0], v[1]), high = _mm512_packs_epi32(v[2], v[3]);
  const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  _mm512_storeu_si512(to, _mm512_permutexvar_epi32(in_order, _mm512_packus_epi16(low, high)));
}
// Clamped to 0 to 255, then truncated.
inline void StoreTruncated(uint8_t* to, Floats v) {
  v = _mm512_max_ps(_mm512_min_ps(v, Set(255.0f)), _mm512_setzero_ps());
  StoreAsBytes(to, _mm512_cvttps_epi32(v));
}

// Rounded to the nearest, then clamped.
inline void StoreRounded(uint8_t* to, Floats v) {
  const Ints numbers = _mm512_max_epi32(_mm512_cvtps_epi32(v), _mm512_setzero_si512());
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtusepi32_epi8(numbers));
}

// 16 bytes as 32-bit numbers, and the upper bytes of 16 numbers.
inline void LoadSixteen(const uint8_t* from, Ints (&v)[1]) { v[0] = LoadBytesAsInts(from); }
inline void StoreSixteenUpperBytes(uint8_t* to, const Ints (&v)[1]) {
  StoreAsBytes(to, ShiftRight<24>(v[0]));
}

inline WideProduct WideMul(Ints a, Ints b) {
  const Ints even = _mm512_mul_epu32(a, b);
  const Ints odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), b);
  return {_mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), 0xAAAA, odd),
          _mm512_mask_mov_epi32(even, 0xAAAA, _mm512_slli_epi64(odd, 32))};
}
inline Ints Load(const uint32_t* from) { return _mm512_loadu_si512(from); }
inline Floats FromBits(Ints v) { return _mm512_castsi512_ps(v); }
inline void Store(uint32_t* to, Ints v) { _mm512_storeu_si512(to, v); }

// Four numbers of each row, one row per lane: v[k] has the k-th of each row.
inline void LoadTransposed(const float* from, int64_t hop, Floats (&v)[4]) {
  for (int i = 0; i < 4; ++i) {
    const float* const at = from + i * hop;
    v[i] = _mm512_castps128_ps512(_mm_loadu_ps(at));
    v[i] = _mm512_insertf32x4(v[i], _mm_loadu_ps(at + 4 * hop), 1);
    v[i] = _mm512_insertf32x4(v[i], _mm_loadu_ps(at + 8 * hop), 2);
    v[i] = _mm512_insertf32x4(v[i], _mm_loadu_ps(at + 12 * hop), 3);
  }
  transpose_quarters(v);
}
inline void StoreTransposed(Floats (&v)[4], int64_t hop, float* to) {
  transpose_quarters(v);
  for (int i = 0; i < 4; ++i) {
    float* const at = to + i * hop;
    _mm_storeu_ps(at, _mm512_castps512_ps128(v[i]));
    _mm_storeu_ps(at + 4 * hop, _mm512_extractf32x4_ps(v[i], 1));
    _mm_storeu_ps(at + 8 * hop, _mm512_extractf32x4_ps(v[i], 2));
    _mm_storeu_ps(at + 12 * hop, _mm512_extractf32x4_ps(v[i], 3));
  }
}

inline Words LoadBytes(const uint8_t* from) { return _mm512_loadu_si512(from); }
inline void StoreBytes(uint8_t* to, Words bytes) { _mm512_storeu_si512(to, bytes); }
inline Words LoadBytesAsWords(const uint8_t* from) {
  return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
inline Ints LoadWordsAsInts(const uint16_t* from) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
// Words, saturated to 0 to 255.
inline void StoreWordsAsBytes(uint8_t* to, Words low, Words high) {
  _mm512_storeu_si512(to, _mm512_packus_epi16(low, high));
}

// Deinterleaves bytes to three planes: as many as fill a register of each, or, if the level has
// masked loads (kLoadsPart), only the remaining ones.
constexpr bool kLoadsPart = true;
// Byte i of plane c is byte 3 * i + c of three vectors. The first permutation places what is in the
// first two vectors; the second adds the rest, from the third.
struct Gather3 {
  alignas(64) uint8_t first[3][64], second[3][64], reverse[64];
};
constexpr Gather3 kGather3 = [] {
  Gather3 table{};
  for (int i = 0; i < 64; ++i) {
    table.reverse[i] = static_cast<uint8_t>(63 - i);
    for (int c = 0; c < 3; ++c) {
      const int at = 3 * i + c;
      table.first[c][i] = static_cast<uint8_t>(at < 128 ? at : 0);
      table.second[c][i] = static_cast<uint8_t>(at < 128 ? i : at - 128 + 64);
    }
  }
  return table;
}();
inline void DeinterleaveBytes3(const uint8_t* from, int left, uint8_t* const to[3]) {
  Words v[3];
#pragma GCC unroll 4
  for (int k = 0; k < 3; ++k) {
    const int bytes = left - 64 * k;  // a masked load does not touch other bytes
    const __mmask64 mask = bytes >= 64 ? ~uint64_t{0}
                           : bytes > 0 ? ~uint64_t{0} >> (64 - bytes)
                                       : 0;
    v[k] = _mm512_maskz_loadu_epi8(mask, from + 64 * k);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 3; ++c) {
    const Words low = _mm512_permutex2var_epi8(v[0], _mm512_load_si512(kGather3.first[c]), v[1]);
    StoreBytes(to[c], _mm512_permutex2var_epi8(low, _mm512_load_si512(kGather3.second[c]), v[2]));
  }
}
inline Words ReverseBytes(Words v) {
  return _mm512_permutexvar_epi8(_mm512_load_si512(kGather3.reverse), v);
}

// Signed words of two registers, saturated to 0 to 255: interleaved, and concatenated.
inline void StoreInterleavedAsBytes(uint8_t* to, Words even, Words odd) {
  const Words in_turn =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
  StoreBytes(to, _mm512_shuffle_epi8(_mm512_packus_epi16(even, odd), in_turn));
}
inline void StoreInOrderAsBytes(uint8_t* to, Words left, Words right) {
  const Words in_order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  StoreBytes(to, _mm512_permutexvar_epi64(in_order, _mm512_packus_epi16(left, right)));
}
// The same for 32-bit numbers.
inline __m128i clamped_bytes(Ints v) { return _mm512_cvtusepi32_epi8(Max(v, Set(0))); }
inline void StoreInterleavedIntsAsBytes(uint8_t* to, Ints even, Ints odd) {
  const __m128i a = clamped_bytes(even), b = clamped_bytes(odd);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_unpacklo_epi8(a, b));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16), _mm_unpackhi_epi8(a, b));
}
inline void StoreInOrderIntsAsBytes(uint8_t* to, Ints left, Ints right) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), clamped_bytes(left));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16), clamped_bytes(right));
}

// Words with the odd bytes of `odd` and the even bytes of `even`.
inline Words OddEvenBytes(Words odd, Words even) {
  return _mm512_ternarylogic_epi32(SetWords(0x00ff), even, odd, 0xca);
}
// Two low halves and two high halves, in the order of the bytes that they were made from.
inline void StoreHalves(uint8_t* to, Words low, Words high) {
  const Words first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const Words second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  StoreBytes(to, _mm512_permutex2var_epi64(low, first, high));
  StoreBytes(to + kByteLanes, _mm512_permutex2var_epi64(low, second, high));
}
// A row's bytes, and the bytes before and after each. Advances by one register at a time: loads
// that are one byte off cost more than permutations.
struct ByteNeighbors {
  explicit ByteNeighbors(const uint8_t* row)
      : here(LoadBytes(row - kByteLanes)), next(LoadBytes(row)) {
    alignas(64) uint8_t numbers[64];
    for (int i = 0; i < 64; ++i) numbers[i] = static_cast<uint8_t>(i + 1);
    one_on = _mm512_load_si512(numbers);
    one_back = _mm512_add_epi8(one_on, _mm512_set1_epi8(62));
  }
  void move_to(const uint8_t* at) {
    const Words previous = here;
    here = next;
    next = LoadBytes(at + kByteLanes);
    before = _mm512_permutex2var_epi8(previous, one_back, here);
    after = _mm512_permutex2var_epi8(here, one_on, next);
  }
  Words here, before, after, next, one_on, one_back;
};

inline Words WidenMulPairwiseAddTo(Words sum, Words a, Words b) {
  return _mm512_dpwssd_epi32(sum, a, b);
}

// Gathers pixels by lanes of indices; and lanes of float64.

// Whether 0 <= v < end. REQUIRES: end > 0.
inline Mask InRange(Ints v, int end) { return _mm512_cmplt_epu32_mask(v, Set(end)); }
inline Ints MaskedGatherOr(const uint32_t* from, Ints at, Mask where, Ints otherwise) {
  return _mm512_mask_i32gather_epi32(otherwise, where, at, from, 4);
}
// The pixel at each position, and the one after it. Black in lanes that are masked out.
inline void GatherPairs(const uint32_t* from, Ints at, Mask where, Ints& left, Ints& right) {
  const __m512i low = _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), where & 0xff,
                                                  _mm512_castsi512_si256(at), from, 4);
  const __m512i high = _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), where >> 8,
                                                   _mm512_extracti64x4_epi64(at, 1), from, 4);
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  left = _mm512_permutex2var_epi32(low, even, high);
  right = _mm512_permutex2var_epi32(low, _mm512_or_si512(even, Set(1)), high);
}
// Shuffle that extracts this channel's byte from each pixel.
inline Ints picker(int channel) {
  const __m128i bytes = _mm_setr_epi8(0, -1, -1, -1, 4, -1, -1, -1, 8, -1, -1, -1, 12, -1, -1, -1);
  return _mm512_broadcast_i32x4(_mm_or_si128(bytes, _mm_set1_epi32(channel)));
}
struct Pickers {
  Pickers() {
    for (int c = 0; c < 4; ++c) of[c] = picker(c);
  }
  Ints of[4];
};
inline Ints LoadDup128(const uint8_t* from) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline Ints transposed_lanes() {
  return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}
inline void StorePlane(uint8_t* to, Ints v) {
  _mm512_storeu_si512(to, _mm512_permutexvar_epi32(transposed_lanes(), v));
}
inline Ints LoadPlane(const uint8_t* from) {
  return _mm512_permutexvar_epi32(transposed_lanes(), _mm512_loadu_si512(from));
}
inline Mask FirstN(int count) {
  return static_cast<Mask>(count < kLanes ? (1u << count) - 1 : 0xffff);
}
inline bool AnyTrue(Mask where) { return where != 0; }
inline Mask AndNot(Mask a, Mask b) { return _kandn_mask16(a, b); }
inline bool NoneIsNaN(Floats v) { return _mm512_cmp_ps_mask(v, v, _CMP_ORD_Q) == 0xffff; }
inline Mask HasNoBits(Ints v, int bits) { return _mm512_testn_epi32_mask(v, Set(bits)); }
// The lowest byte of each.
inline void StoreLowBytes(uint8_t* to, Ints v) { StoreAsBytes(to, v); }

inline Few SetFew(int v) { return _mm256_set1_epi32(v); }
inline Doubles IotaDoubles() { return _mm512_setr_pd(0, 1, 2, 3, 4, 5, 6, 7); }
inline Doubles Floor(Doubles v) {
  return _mm512_roundscale_pd(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
inline Floats ToFloats(Doubles low, Doubles high) {
  return _mm512_castpd_ps(
      _mm512_insertf64x4(_mm512_castps_pd(_mm512_castps256_ps512(_mm512_cvtpd_ps(low))),
                         _mm256_castps_pd(_mm512_cvtpd_ps(high)), 1));
}
inline Ints Combine(Few low, Few high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
inline Mask Combine(FewMask low, FewMask high) { return static_cast<Mask>(low | high << 8); }
// Whether 0 <= v < end.
inline FewMask InRange(Doubles v, double end) {
  return static_cast<FewMask>(_mm512_cmp_pd_mask(v, _mm512_setzero_pd(), _CMP_GE_OQ) &
                              _mm512_cmp_pd_mask(v, Set(end), _CMP_LT_OQ));
}
inline FewMask And(FewMask a, FewMask b) { return static_cast<FewMask>(a & b); }
inline Few IfThenElse(FewMask where, Few a, Few otherwise) {
  return _mm256_mask_mov_epi32(otherwise, where, a);
}
inline Few MaskedGatherOr(const uint32_t* from, Few at, FewMask where, Few otherwise) {
  return _mm256_mmask_i32gather_epi32(otherwise, where, at, from, 4);
}
inline Few Add(Few a, Few b) { return _mm256_add_epi32(a, b); }
inline Few Mul(Few a, Few b) { return _mm256_mullo_epi32(a, b); }
inline Few LowBytes(Few v, int shift) {
  return _mm256_and_si256(_mm256_srli_epi32(v, shift), SetFew(255));
}
inline void Store(int32_t* to, Few v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }
inline void StoreLowBytes(uint8_t* to, Few v) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm256_cvtepi32_epi8(v));
}

inline Few LoadBytesAsFew(const uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}
inline Few Sub(Few a, Few b) { return _mm256_sub_epi32(a, b); }
inline Few And(Few a, Few b) { return _mm256_and_si256(a, b); }
inline Few Max(Few a, Few b) { return _mm256_max_epi32(a, b); }
inline Few Min(Few a, Few b) { return _mm256_min_epi32(a, b); }
inline FewMask Eq(Few a, Few b) { return _mm256_cmpeq_epi32_mask(a, b); }
inline FewFloats IfThenElse(FewMask where, FewFloats a, FewFloats otherwise) {
  return _mm256_mask_mov_ps(otherwise, where, a);
}
inline FewFloats ToFloats(Few v) { return _mm256_cvtepi32_ps(v); }
inline Doubles Trunc(Doubles v) {
  return _mm512_roundscale_pd(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
inline FewFloats Sub(FewFloats a, FewFloats b) { return _mm256_sub_ps(a, b); }
inline FewFloats Mul(FewFloats a, FewFloats b) { return _mm256_mul_ps(a, b); }
inline FewFloats Div(FewFloats a, FewFloats b) { return _mm256_div_ps(a, b); }
inline Few Gather(const int32_t* table, Few at) { return _mm256_i32gather_epi32(table, at, 4); }
inline FewFloats Gather(const float* table, Few at) { return _mm256_i32gather_ps(table, at, 4); }

}  // namespace
}  // namespace headrace::avx512
