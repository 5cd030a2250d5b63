// SPDX-License-Identifier: Apache-2.0
// AVX-512: 16 numbers of 32 bits at a time, or 64 bytes as halves of 32 words ("low" and "high":
// of each group of 16 bytes).
// Names are Highway's where it has one. each_level.h chooses the level. Internal to kernels/.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace headrace::avx512 {
namespace {

using Floats = __m512;
using Ints = __m512i;
constexpr int kLanes = 16;

inline Ints Load(const int32_t* from) { return _mm512_loadu_si512(from); }
inline void Store(int32_t* to, Ints v) { _mm512_storeu_si512(to, v); }
inline Ints LoadBytesAsInts(const uint8_t* from) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline Floats ToFloats(Ints v) { return _mm512_cvtepi32_ps(v); }
inline Floats LoadBytesAsFloats(const uint8_t* from) { return ToFloats(LoadBytesAsInts(from)); }
inline Floats Load(const float* from) { return _mm512_loadu_ps(from); }
inline void Store(float* to, Floats v) { _mm512_storeu_ps(to, v); }

inline Floats Set(float v) { return _mm512_set1_ps(v); }
inline Ints Set(int v) { return _mm512_set1_epi32(v); }
inline Ints Iota() {
  return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
inline Ints Add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
inline Ints Sub(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
inline Ints Mul(Ints a, Ints b) { return _mm512_mullo_epi32(a, b); }
inline Ints Max(Ints a, Ints b) { return _mm512_max_epi32(a, b); }
inline Ints Min(Ints a, Ints b) { return _mm512_min_epi32(a, b); }
inline Ints And(Ints a, Ints b) { return _mm512_and_si512(a, b); }
inline Ints Or(Ints a, Ints b) { return _mm512_or_si512(a, b); }
inline Ints Xor(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
template <int bits>
Ints ShiftRight(Ints v) {
  return _mm512_srli_epi32(v, bits);
}
template <int bits>
Ints ShiftRightSigned(Ints v) {
  return _mm512_srai_epi32(v, bits);
}
inline Ints ClampToBytes(Ints v) { return Max(Min(v, Set(255)), Set(0)); }
inline Ints Gather(const int32_t* table, Ints at) { return _mm512_i32gather_epi32(at, table, 4); }

inline Floats Add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
inline Floats Sub(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
inline Floats Mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
inline Floats Div(Floats a, Floats b) { return _mm512_div_ps(a, b); }
// a * b + c, rounded once
inline Floats MulAdd(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
// c - a * b, rounded once
inline Floats NegMulAdd(Floats a, Floats b, Floats c) { return _mm512_fnmadd_ps(a, b, c); }
// The second where one is NaN.
inline Floats Min(Floats a, Floats b) { return _mm512_min_ps(a, b); }
inline Floats Max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
inline Floats Floor(Floats v) {
  return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
inline Ints TruncToInts(Floats v) { return _mm512_cvttps_epi32(v); }

// Which lanes: a bit of each.
using Mask = __mmask16;
inline Mask Eq(Ints a, Ints b) { return _mm512_cmpeq_epi32_mask(a, b); }
inline Mask Lt(Ints a, Ints b) { return _mm512_cmplt_epi32_mask(a, b); }
inline Mask Eq(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
inline Mask Lt(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
inline Mask Gt(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
inline Mask Ge(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
inline Mask And(Mask a, Mask b) { return _kand_mask16(a, b); }
inline Ints IfThenElse(Mask where, Ints a, Ints otherwise) {
  return _mm512_mask_mov_epi32(otherwise, where, a);
}
inline Floats IfThenElse(Mask where, Floats a, Floats otherwise) {
  return _mm512_mask_mov_ps(otherwise, where, a);
}
inline Floats IfThenElseZero(Mask where, Floats v) { return _mm512_maskz_mov_ps(where, v); }
// The entries of a table of eight at numbers from 0 to 7.
using Table8 = Floats;
inline Table8 LoadTable8(const float* from) { return _mm512_maskz_loadu_ps(0xff, from); }
inline Floats Lookup8(Table8 table, Ints at) { return _mm512_permutexvar_ps(at, table); }

inline void StoreAsBytes(uint8_t* to, Ints v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(v));
}
// Four in a row, clamped to 0 to 255 by what narrows them.
inline void StoreClamped(uint8_t* to, const Ints (&v)[4]) {
  const __m512i low = _mm512_packs_epi32(v[0], v[1]), high = _mm512_packs_epi32(v[2], v[3]);
  const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  _mm512_storeu_si512(to, _mm512_permutexvar_epi32(in_order, _mm512_packus_epi16(low, high)));
}
// Clamped to 0 to 255, then cut off.
inline void StoreTruncated(uint8_t* to, Floats v) {
  v = _mm512_max_ps(_mm512_min_ps(v, Set(255.0f)), _mm512_setzero_ps());
  StoreAsBytes(to, _mm512_cvttps_epi32(v));
}

// Rounded to the nearest, then clamped.
inline void StoreRounded(uint8_t* to, Floats v) {
  const Ints numbers = _mm512_max_epi32(_mm512_cvtps_epi32(v), _mm512_setzero_si512());
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtusepi32_epi8(numbers));
}

// Both halves of the products without signs.
struct WideProduct {
  Ints high, low;
};
inline WideProduct WideMul(Ints a, Ints b) {
  const Ints even = _mm512_mul_epu32(a, b);
  const Ints odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), b);
  return {_mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), 0xAAAA, odd),
          _mm512_mask_mov_epi32(even, 0xAAAA, _mm512_slli_epi64(odd, 32))};
}
inline Ints Load(const uint32_t* from) { return _mm512_loadu_si512(from); }
inline Ints BitsOf(Floats v) { return _mm512_castps_si512(v); }
inline Floats FromBits(Ints v) { return _mm512_castsi512_ps(v); }
inline Floats Sqrt(Floats v) { return _mm512_sqrt_ps(v); }
inline void Store(uint32_t* to, Ints v) { _mm512_storeu_si512(to, v); }

// Within each quarter, the element j of vector i is exchanged with element i of vector j.
inline void transpose_quarters(Floats (&v)[4]) {
  const Floats low01 = _mm512_unpacklo_ps(v[0], v[1]), high01 = _mm512_unpackhi_ps(v[0], v[1]);
  const Floats low23 = _mm512_unpacklo_ps(v[2], v[3]), high23 = _mm512_unpackhi_ps(v[2], v[3]);
  v[0] = _mm512_shuffle_ps(low01, low23, 0x44);
  v[1] = _mm512_shuffle_ps(low01, low23, 0xEE);
  v[2] = _mm512_shuffle_ps(high01, high23, 0x44);
  v[3] = _mm512_shuffle_ps(high01, high23, 0xEE);
}
// Four numbers of each row, one row a lane: v[k] has the k-th of all.
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

using Words = __m512i;  // whatever the lanes are: bytes, words or numbers of 32 bits
constexpr int kByteLanes = 64;

inline Words LoadBytes(const uint8_t* from) { return _mm512_loadu_si512(from); }
inline void StoreBytes(uint8_t* to, Words bytes) { _mm512_storeu_si512(to, bytes); }
inline Words LowWords(Words bytes) { return _mm512_unpacklo_epi8(bytes, _mm512_setzero_si512()); }
inline Words HighWords(Words bytes) { return _mm512_unpackhi_epi8(bytes, _mm512_setzero_si512()); }
inline Words MinBytes(Words a, Words b) { return _mm512_min_epu8(a, b); }
inline Words MaxBytes(Words a, Words b) { return _mm512_max_epu8(a, b); }
// Of words, cut to 0 to 255.
inline void StoreWordsAsBytes(uint8_t* to, Words low, Words high) {
  _mm512_storeu_si512(to, _mm512_packus_epi16(low, high));
}

inline Words AddWords(Words a, Words b) { return _mm512_add_epi16(a, b); }
inline Words SubWords(Words a, Words b) { return _mm512_sub_epi16(a, b); }
template <int bits>
Words ShiftLeftWords(Words v) {
  return _mm512_slli_epi16(v, bits);
}
template <int bits>
Words ShiftRightWords(Words v) {
  return _mm512_srli_epi16(v, bits);
}
// The upper 16 bits of products without signs.
inline Words MulHighWords(Words a, Words b) { return _mm512_mulhi_epu16(a, b); }
inline Words SetWords(int v) { return _mm512_set1_epi16(static_cast<int16_t>(v)); }

// Bytes and words at even and at odd places.
inline Words EvenBytes(Words bytes) { return _mm512_and_si512(bytes, SetWords(0xff)); }
inline Words OddBytes(Words bytes) { return _mm512_srli_epi16(bytes, 8); }
inline Words InterleaveBytes(Words even, Words odd) {
  return _mm512_or_si512(even, _mm512_slli_epi16(odd, 8));
}
// Sums of two neighbours, each times its weight of one byte (all_bytes).
inline Words MulPairwiseAddBytes(Words bytes, Words weights) {
  return _mm512_maddubs_epi16(bytes, weights);
}
inline Words SetBytePairs(int even, int odd) { return SetWords(even | odd << 8); }

// Words of a and of b in turn,
inline Words InterleaveLowWords(Words a, Words b) { return _mm512_unpacklo_epi16(a, b); }
inline Words InterleaveHighWords(Words a, Words b) { return _mm512_unpackhi_epi16(a, b); }
// their products with other such pairs, added up as numbers of 32 bits,
inline Words WidenMulPairwiseAdd(Words a, Words b) { return _mm512_madd_epi16(a, b); }
inline Words SetWordPairs(int first, int second) {
  return _mm512_set1_epi32(first | static_cast<int>(static_cast<uint32_t>(second) << 16));
}
inline Words SetInts(int v) { return _mm512_set1_epi32(v); }
inline Words AddInts(Words a, Words b) { return _mm512_add_epi32(a, b); }
// with their signs,
template <int bits>
Words ShiftRightInts(Words v) {
  return _mm512_srai_epi32(v, bits);
}
// and words of them again, cut to what these hold.
inline Words DemoteToWords(Words low, Words high) { return _mm512_packs_epi32(low, high); }

// Pixels from places that lanes name, and doubles.

// From 0 up to it. REQUIRES: end > 0.
inline Mask InRange(Ints v, int end) { return _mm512_cmplt_epu32_mask(v, Set(end)); }
inline Ints MaskedGatherOr(const uint32_t* from, Ints at, Mask where, Ints otherwise) {
  return _mm512_mask_i32gather_epi32(otherwise, where, at, from, 4);
}
// The pixel at each place, and the one after it. Black where not asked for.
inline void GatherPairs(const uint32_t* from, Ints at, Mask where, Ints& left, Ints& right) {
  const __m512i low = _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), where & 0xff,
                                                  _mm512_castsi512_si256(at), from, 4);
  const __m512i high = _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), where >> 8,
                                                   _mm512_extracti64x4_epi64(at, 1), from, 4);
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  left = _mm512_permutex2var_epi32(low, even, high);
  right = _mm512_permutex2var_epi32(low, _mm512_or_si512(even, Set(1)), high);
}
// What takes this channel's byte out of each pixel.
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
inline Ints TableLookupBytes(Ints pixels, Ints picker) {
  return _mm512_shuffle_epi8(pixels, picker);
}
inline Ints LoadDup128(const uint8_t* from) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
// Of each group of 16 bytes.
inline Ints InterleaveLowBytes(Ints a, Ints b) { return _mm512_unpacklo_epi8(a, b); }
inline Ints InterleaveHighBytes(Ints a, Ints b) { return _mm512_unpackhi_epi8(a, b); }
inline Ints InterleaveLowInts(Ints a, Ints b) { return _mm512_unpacklo_epi32(a, b); }
inline Ints InterleaveHighInts(Ints a, Ints b) { return _mm512_unpackhi_epi32(a, b); }
inline Ints InterleaveLowPairs(Ints a, Ints b) { return _mm512_unpacklo_epi64(a, b); }
inline Ints InterleaveHighPairs(Ints a, Ints b) { return _mm512_unpackhi_epi64(a, b); }
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
inline Ints NearestInt(Floats v) { return _mm512_cvtps_epi32(v); }
inline Ints LowBytes(Ints v) { return _mm512_and_si512(v, Set(255)); }
// The lowest byte of each.
inline void StoreLowBytes(uint8_t* to, Ints v) { StoreAsBytes(to, v); }

// As many as there are doubles in a register.
using Doubles = __m512d;
using Few = __m256i;
using FewMask = __mmask8;
constexpr int kDoubles = 8;

inline Doubles Set(double v) { return _mm512_set1_pd(v); }
inline Few SetFew(int v) { return _mm256_set1_epi32(v); }
inline Doubles IotaDoubles() { return _mm512_setr_pd(0, 1, 2, 3, 4, 5, 6, 7); }
inline Doubles Load(const double* from) { return _mm512_loadu_pd(from); }
inline void Store(double* to, Doubles v) { _mm512_storeu_pd(to, v); }
inline Doubles Add(Doubles a, Doubles b) { return _mm512_add_pd(a, b); }
inline Doubles Sub(Doubles a, Doubles b) { return _mm512_sub_pd(a, b); }
inline Doubles Mul(Doubles a, Doubles b) { return _mm512_mul_pd(a, b); }
inline Doubles Div(Doubles a, Doubles b) { return _mm512_div_pd(a, b); }
inline Doubles Floor(Doubles v) {
  return _mm512_roundscale_pd(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
inline Few TruncToInts(Doubles v) { return _mm512_cvttpd_epi32(v); }
inline Doubles ToDoubles(Few v) { return _mm512_cvtepi32_pd(v); }
inline Floats ToFloats(Doubles low, Doubles high) {
  return _mm512_castpd_ps(
      _mm512_insertf64x4(_mm512_castps_pd(_mm512_castps256_ps512(_mm512_cvtpd_ps(low))),
                         _mm256_castps_pd(_mm512_cvtpd_ps(high)), 1));
}
inline Ints Combine(Few low, Few high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
inline Mask Combine(FewMask low, FewMask high) { return static_cast<Mask>(low | high << 8); }
// From 0 up to it.
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

using FewFloats = __m256;
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
inline FewFloats ToFloats(Doubles v) { return _mm512_cvtpd_ps(v); }
inline Doubles ToDoubles(FewFloats v) { return _mm512_cvtps_pd(v); }
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
