// SPDX-License-Identifier: Apache-2.0
// AVX2: pixels from places that lanes name, and doubles. Included after avx2.h, at its level.
// Internal to kernels/.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace headrace::avx2 {
namespace {

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
inline void StorePlane(uint8_t* to, Ints v) {
  const Ints order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  Store(reinterpret_cast<int32_t*>(to), _mm256_permutevar8x32_epi32(v, order));
}
inline Ints LoadPlane(const uint8_t* from) {
  const Ints order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
  return _mm256_permutevar8x32_epi32(Load(reinterpret_cast<const int32_t*>(from)), order);
}
// Of four registers of pixels: each channel's bytes, as many as a register has. The two are each
// other's inverse.
inline void StorePlanes(const Ints pixels[4], int channels, uint8_t* const out[], int64_t at) {
  const auto by_channel = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const Ints p[4] = {
      _mm256_shuffle_epi8(pixels[0], by_channel), _mm256_shuffle_epi8(pixels[1], by_channel),
      _mm256_shuffle_epi8(pixels[2], by_channel), _mm256_shuffle_epi8(pixels[3], by_channel)};
  const Ints low[2] = {_mm256_unpacklo_epi32(p[0], p[1]), _mm256_unpacklo_epi32(p[2], p[3])};
  const Ints high[2] = {_mm256_unpackhi_epi32(p[0], p[1]), _mm256_unpackhi_epi32(p[2], p[3])};
  StorePlane(out[0] + at, _mm256_unpacklo_epi64(low[0], low[1]));
  if (channels > 1) StorePlane(out[1] + at, _mm256_unpackhi_epi64(low[0], low[1]));
  if (channels > 2) StorePlane(out[2] + at, _mm256_unpacklo_epi64(high[0], high[1]));
  if (channels > 3) StorePlane(out[3] + at, _mm256_unpackhi_epi64(high[0], high[1]));
}
inline void LoadPlanes(const uint8_t* const planes[], int channels, int64_t at, Ints otherwise,
                       Ints pixels[4]) {
  const Ints first = LoadPlane(planes[0] + at);
  const Ints second = channels > 1 ? LoadPlane(planes[1] + at) : _mm256_setzero_si256();
  const Ints third = channels > 2 ? LoadPlane(planes[2] + at) : _mm256_setzero_si256();
  const Ints last = channels > 3 ? LoadPlane(planes[3] + at) : otherwise;
  const Ints low[2] = {_mm256_unpacklo_epi8(first, second), _mm256_unpacklo_epi8(third, last)};
  const Ints high[2] = {_mm256_unpackhi_epi8(first, second), _mm256_unpackhi_epi8(third, last)};
  pixels[0] = _mm256_unpacklo_epi16(low[0], low[1]);
  pixels[1] = _mm256_unpackhi_epi16(low[0], low[1]);
  pixels[2] = _mm256_unpacklo_epi16(high[0], high[1]);
  pixels[3] = _mm256_unpackhi_epi16(high[0], high[1]);
}
inline Mask FirstN(int count) { return _mm256_cmpgt_epi32(Set(count), Iota()); }
inline bool AnyTrue(Mask where) { return !_mm256_testz_si256(where, where); }
inline Mask Without(Mask a, Mask b) { return _mm256_andnot_si256(b, a); }
inline bool NoneIsNaN(Floats v) {
  return _mm256_movemask_ps(_mm256_cmp_ps(v, v, _CMP_ORD_Q)) == 0xff;
}
inline Mask HasNoBits(Ints v, int bits) {
  return _mm256_cmpeq_epi32(_mm256_and_si256(v, Set(bits)), _mm256_setzero_si256());
}
inline Ints AndBits(Ints v, int bits) { return _mm256_and_si256(v, Set(bits)); }
inline Ints NearestInt(Floats v) { return _mm256_cvtps_epi32(v); }
inline Ints ShiftLeft(Ints v, int bits) { return _mm256_slli_epi32(v, bits); }
inline Ints ShiftRight(Ints v, int bits) { return _mm256_srli_epi32(v, bits); }
inline Ints ShiftRightSigned(Ints v, int bits) { return _mm256_srai_epi32(v, bits); }
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

}  // namespace
}  // namespace headrace::avx2
