// SPDX-License-Identifier: Apache-2.0
// AVX2 and FMA: 8 numbers of 32 bits at a time, or 32 bytes as halves of 16 words ("low" and
// "high": of each group of 16 bytes).
// Names are Highway's where it has one. each_level.h chooses the level. Internal to kernels/.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace headrace::avx2 {
namespace {

using Floats = __m256;
using Ints = __m256i;
constexpr int kLanes = 8;

inline Ints Load(const int32_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline void Store(int32_t* to, Ints v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }
inline Ints LoadBytesAsInts(const uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}
inline Floats ToFloats(Ints v) { return _mm256_cvtepi32_ps(v); }
inline Floats LoadBytesAsFloats(const uint8_t* from) { return ToFloats(LoadBytesAsInts(from)); }
inline Floats Load(const float* from) { return _mm256_loadu_ps(from); }
inline void Store(float* to, Floats v) { _mm256_storeu_ps(to, v); }

inline Floats Set(float v) { return _mm256_set1_ps(v); }
inline Ints Set(int v) { return _mm256_set1_epi32(v); }
inline Ints Iota() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
inline Ints Add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
inline Ints Sub(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
inline Ints Mul(Ints a, Ints b) { return _mm256_mullo_epi32(a, b); }
inline Ints Max(Ints a, Ints b) { return _mm256_max_epi32(a, b); }
inline Ints Min(Ints a, Ints b) { return _mm256_min_epi32(a, b); }
inline Ints And(Ints a, Ints b) { return _mm256_and_si256(a, b); }
inline Ints Or(Ints a, Ints b) { return _mm256_or_si256(a, b); }
inline Ints Xor(Ints a, Ints b) { return _mm256_xor_si256(a, b); }
template <int bits>
Ints ShiftRight(Ints v) {
  return _mm256_srli_epi32(v, bits);
}
template <int bits>
Ints ShiftRightSigned(Ints v) {
  return _mm256_srai_epi32(v, bits);
}
inline Ints ClampToBytes(Ints v) { return Max(Min(v, Set(255)), Set(0)); }
inline Ints Gather(const int32_t* table, Ints at) { return _mm256_i32gather_epi32(table, at, 4); }

inline Floats Add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
inline Floats Sub(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
inline Floats Mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
inline Floats Div(Floats a, Floats b) { return _mm256_div_ps(a, b); }
// a * b + c, rounded once
inline Floats MulAdd(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
// c - a * b, rounded once
inline Floats NegMulAdd(Floats a, Floats b, Floats c) { return _mm256_fnmadd_ps(a, b, c); }
// The second where one is NaN.
inline Floats Min(Floats a, Floats b) { return _mm256_min_ps(a, b); }
inline Floats Max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
inline Floats Floor(Floats v) { return _mm256_floor_ps(v); }
inline Ints TruncToInts(Floats v) { return _mm256_cvttps_epi32(v); }

// Which lanes: all bits of each.
using Mask = __m256i;
inline Mask Eq(Ints a, Ints b) { return _mm256_cmpeq_epi32(a, b); }
inline Mask Lt(Ints a, Ints b) { return _mm256_cmpgt_epi32(b, a); }
inline Mask Eq(Floats a, Floats b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)); }
inline Mask Lt(Floats a, Floats b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
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
// The entries of a table of eight at numbers from 0 to 7.
using Table8 = Floats;
inline Table8 LoadTable8(const float* from) { return Load(from); }
inline Floats Lookup8(Table8 table, Ints at) { return _mm256_permutevar8x32_ps(table, at); }

// Below 0 and above 255 they are cut to these: packing saturates.
inline void StoreAsBytes(uint8_t* to, Ints v) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
}
// Four in a row, clamped to 0 to 255 by what narrows them.
inline void StoreClamped(uint8_t* to, const Ints (&v)[4]) {
  const __m256i low = _mm256_packs_epi32(v[0], v[1]), high = _mm256_packs_epi32(v[2], v[3]);
  const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), in_order);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
}
// Clamped to 0 to 255, then cut off.
inline void StoreTruncated(uint8_t* to, Floats v) {
  StoreAsBytes(to, _mm256_cvttps_epi32(_mm256_min_ps(v, Set(255.0f))));
}

// Rounded to the nearest, then clamped.
inline void StoreRounded(uint8_t* to, Floats v) { StoreAsBytes(to, _mm256_cvtps_epi32(v)); }

// Both halves of the products without signs.
struct WideProduct {
  Ints high, low;
};
inline WideProduct WideMul(Ints a, Ints b) {
  const Ints even = _mm256_mul_epu32(a, b);
  const Ints odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), b);
  return {_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA),
          _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA)};
}
inline Ints Load(const uint32_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline Ints BitsOf(Floats v) { return _mm256_castps_si256(v); }
inline Floats FromBits(Ints v) { return _mm256_castsi256_ps(v); }
inline Floats Sqrt(Floats v) { return _mm256_sqrt_ps(v); }
inline void Store(uint32_t* to, Ints v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }

// Within each half, the element j of vector i is exchanged with element i of vector j.
inline void transpose_quarters(Floats (&v)[4]) {
  const Floats low01 = _mm256_unpacklo_ps(v[0], v[1]), high01 = _mm256_unpackhi_ps(v[0], v[1]);
  const Floats low23 = _mm256_unpacklo_ps(v[2], v[3]), high23 = _mm256_unpackhi_ps(v[2], v[3]);
  v[0] = _mm256_shuffle_ps(low01, low23, 0x44);
  v[1] = _mm256_shuffle_ps(low01, low23, 0xEE);
  v[2] = _mm256_shuffle_ps(high01, high23, 0x44);
  v[3] = _mm256_shuffle_ps(high01, high23, 0xEE);
}
// Four numbers of each row, one row a lane: v[k] has the k-th of all.
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

using Words = __m256i;  // whatever the lanes are: bytes, words or numbers of 32 bits
constexpr int kByteLanes = 32;

inline Words LoadBytes(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const Words*>(from));
}
inline void StoreBytes(uint8_t* to, Words bytes) {
  _mm256_storeu_si256(reinterpret_cast<Words*>(to), bytes);
}
inline Words LowWords(Words bytes) { return _mm256_unpacklo_epi8(bytes, _mm256_setzero_si256()); }
inline Words HighWords(Words bytes) { return _mm256_unpackhi_epi8(bytes, _mm256_setzero_si256()); }
inline Words MinBytes(Words a, Words b) { return _mm256_min_epu8(a, b); }
inline Words MaxBytes(Words a, Words b) { return _mm256_max_epu8(a, b); }
// Of words, cut to 0 to 255.
inline void StoreWordsAsBytes(uint8_t* to, Words low, Words high) {
  _mm256_storeu_si256(reinterpret_cast<Words*>(to), _mm256_packus_epi16(low, high));
}

inline Words AddWords(Words a, Words b) { return _mm256_add_epi16(a, b); }
inline Words SubWords(Words a, Words b) { return _mm256_sub_epi16(a, b); }
template <int bits>
Words ShiftLeftWords(Words v) {
  return _mm256_slli_epi16(v, bits);
}
template <int bits>
Words ShiftRightWords(Words v) {
  return _mm256_srli_epi16(v, bits);
}
// The upper 16 bits of products without signs.
inline Words MulHighWords(Words a, Words b) { return _mm256_mulhi_epu16(a, b); }
inline Words SetWords(int v) { return _mm256_set1_epi16(static_cast<int16_t>(v)); }

// Bytes and words at even and at odd places.
inline Words EvenBytes(Words bytes) { return _mm256_and_si256(bytes, SetWords(0xff)); }
inline Words OddBytes(Words bytes) { return _mm256_srli_epi16(bytes, 8); }
inline Words InterleaveBytes(Words even, Words odd) {
  return _mm256_or_si256(even, _mm256_slli_epi16(odd, 8));
}
// Sums of two neighbours, each times its weight of one byte (all_bytes).
inline Words MulPairwiseAddBytes(Words bytes, Words weights) {
  return _mm256_maddubs_epi16(bytes, weights);
}
inline Words SetBytePairs(int even, int odd) { return SetWords(even | odd << 8); }

// Words of a and of b in turn,
inline Words InterleaveLowWords(Words a, Words b) { return _mm256_unpacklo_epi16(a, b); }
inline Words InterleaveHighWords(Words a, Words b) { return _mm256_unpackhi_epi16(a, b); }
// their products with other such pairs, added up as numbers of 32 bits,
inline Words WidenMulPairwiseAdd(Words a, Words b) { return _mm256_madd_epi16(a, b); }
inline Words SetWordPairs(int first, int second) {
  return _mm256_set1_epi32(first | static_cast<int>(static_cast<uint32_t>(second) << 16));
}
inline Words SetInts(int v) { return _mm256_set1_epi32(v); }
inline Words AddInts(Words a, Words b) { return _mm256_add_epi32(a, b); }
// with their signs,
template <int bits>
Words ShiftRightInts(Words v) {
  return _mm256_srai_epi32(v, bits);
}
// and words of them again, cut to what these hold.
inline Words DemoteToWords(Words low, Words high) { return _mm256_packs_epi32(low, high); }

// Pixels from places that lanes name, and doubles.

// From 0 up to it. REQUIRES: end > 0.
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
// The pixel at each place, and the one after it. Black where not asked for.
inline void GatherPairs(const uint32_t* from, Ints at, Mask where, Ints& left, Ints& right) {
  const __m256 low = four_pairs(from, _mm256_castsi256_si128(at), _mm256_castsi256_si128(where));
  const __m256 high =
      four_pairs(from, _mm256_extracti128_si256(at, 1), _mm256_extracti128_si256(where, 1));
  left = in_order(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));
  right = in_order(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
}
// What takes this channel's byte out of each pixel.
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
inline Ints TableLookupBytes(Ints pixels, Ints picker) {
  return _mm256_shuffle_epi8(pixels, picker);
}
inline Ints LoadDup128(const uint8_t* from) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
// Of each group of 16 bytes.
inline Ints InterleaveLowBytes(Ints a, Ints b) { return _mm256_unpacklo_epi8(a, b); }
inline Ints InterleaveHighBytes(Ints a, Ints b) { return _mm256_unpackhi_epi8(a, b); }
inline Ints InterleaveLowInts(Ints a, Ints b) { return _mm256_unpacklo_epi32(a, b); }
inline Ints InterleaveHighInts(Ints a, Ints b) { return _mm256_unpackhi_epi32(a, b); }
inline Ints InterleaveLowPairs(Ints a, Ints b) { return _mm256_unpacklo_epi64(a, b); }
inline Ints InterleaveHighPairs(Ints a, Ints b) { return _mm256_unpackhi_epi64(a, b); }
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
inline Ints NearestInt(Floats v) { return _mm256_cvtps_epi32(v); }
inline Ints LowBytes(Ints v) { return _mm256_and_si256(v, Set(255)); }
// The lowest byte of each.
inline void StoreLowBytes(uint8_t* to, Ints v) { StoreAsBytes(to, LowBytes(v)); }

// As many as there are doubles in a register.
using Doubles = __m256d;
using Few = __m128i;
using FewMask = __m128i;
constexpr int kDoubles = 4;

inline Doubles Set(double v) { return _mm256_set1_pd(v); }
inline Few SetFew(int v) { return _mm_set1_epi32(v); }
inline Doubles IotaDoubles() { return _mm256_setr_pd(0, 1, 2, 3); }
inline Doubles Load(const double* from) { return _mm256_loadu_pd(from); }
inline void Store(double* to, Doubles v) { _mm256_storeu_pd(to, v); }
inline Doubles Add(Doubles a, Doubles b) { return _mm256_add_pd(a, b); }
inline Doubles Sub(Doubles a, Doubles b) { return _mm256_sub_pd(a, b); }
inline Doubles Mul(Doubles a, Doubles b) { return _mm256_mul_pd(a, b); }
inline Doubles Div(Doubles a, Doubles b) { return _mm256_div_pd(a, b); }
inline Doubles Floor(Doubles v) { return _mm256_floor_pd(v); }
inline Few TruncToInts(Doubles v) { return _mm256_cvttpd_epi32(v); }
inline Doubles ToDoubles(Few v) { return _mm256_cvtepi32_pd(v); }
inline Floats ToFloats(Doubles low, Doubles high) {
  return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}
inline Ints Combine(Few low, Few high) { return _mm256_set_m128i(high, low); }
// From 0 up to it.
inline FewMask InRange(Doubles v, double end) {
  const Doubles inside = _mm256_and_pd(_mm256_cmp_pd(v, _mm256_setzero_pd(), _CMP_GE_OQ),
                                       _mm256_cmp_pd(v, Set(end), _CMP_LT_OQ));
  const __m256i pairs = _mm256_castpd_si256(inside);  // the upper half of each is like the lower
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

using FewFloats = __m128;
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
inline FewFloats ToFloats(Doubles v) { return _mm256_cvtpd_ps(v); }
inline Doubles ToDoubles(FewFloats v) { return _mm256_cvtps_pd(v); }
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
