// SPDX-License-Identifier: Apache-2.0
// AVX-512: pixels from places that lanes name, and doubles. Included after avx512.h, at its level.
// Internal to kernels/.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace headrace::avx512 {
namespace {

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
inline Ints transposed_lanes() {
  return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}
inline void StorePlane(uint8_t* to, Ints v) {
  _mm512_storeu_si512(to, _mm512_permutexvar_epi32(transposed_lanes(), v));
}
// Of four registers of pixels: each channel's bytes, as many as a register has. The two are each
// other's inverse.
inline void StorePlanes(const Ints pixels[4], int channels, uint8_t* const out[], int64_t at) {
  const auto by_channel =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const Ints p[4] = {
      _mm512_shuffle_epi8(pixels[0], by_channel), _mm512_shuffle_epi8(pixels[1], by_channel),
      _mm512_shuffle_epi8(pixels[2], by_channel), _mm512_shuffle_epi8(pixels[3], by_channel)};
  const Ints low[2] = {_mm512_unpacklo_epi32(p[0], p[1]), _mm512_unpacklo_epi32(p[2], p[3])};
  const Ints high[2] = {_mm512_unpackhi_epi32(p[0], p[1]), _mm512_unpackhi_epi32(p[2], p[3])};
  StorePlane(out[0] + at, _mm512_unpacklo_epi64(low[0], low[1]));
  if (channels > 1) StorePlane(out[1] + at, _mm512_unpackhi_epi64(low[0], low[1]));
  if (channels > 2) StorePlane(out[2] + at, _mm512_unpacklo_epi64(high[0], high[1]));
  if (channels > 3) StorePlane(out[3] + at, _mm512_unpackhi_epi64(high[0], high[1]));
}
inline void LoadPlanes(const uint8_t* const planes[], int channels, int64_t at, Ints otherwise,
                       Ints pixels[4]) {
  const Ints first =
      _mm512_permutexvar_epi32(transposed_lanes(), _mm512_loadu_si512(planes[0] + at));
  const Ints second = channels > 1 ? _mm512_permutexvar_epi32(transposed_lanes(),
                                                              _mm512_loadu_si512(planes[1] + at))
                                   : _mm512_setzero_si512();
  const Ints third = channels > 2 ? _mm512_permutexvar_epi32(transposed_lanes(),
                                                             _mm512_loadu_si512(planes[2] + at))
                                  : _mm512_setzero_si512();
  const Ints last = channels > 3 ? _mm512_permutexvar_epi32(transposed_lanes(),
                                                            _mm512_loadu_si512(planes[3] + at))
                                 : otherwise;
  const Ints low[2] = {_mm512_unpacklo_epi8(first, second), _mm512_unpacklo_epi8(third, last)};
  const Ints high[2] = {_mm512_unpackhi_epi8(first, second), _mm512_unpackhi_epi8(third, last)};
  pixels[0] = _mm512_unpacklo_epi16(low[0], low[1]);
  pixels[1] = _mm512_unpackhi_epi16(low[0], low[1]);
  pixels[2] = _mm512_unpacklo_epi16(high[0], high[1]);
  pixels[3] = _mm512_unpackhi_epi16(high[0], high[1]);
}
inline Mask FirstN(int count) {
  return static_cast<Mask>(count < kLanes ? (1u << count) - 1 : 0xffff);
}
inline bool AnyTrue(Mask where) { return where != 0; }
inline Mask Without(Mask a, Mask b) { return static_cast<Mask>(a & ~b); }
inline bool NoneIsNaN(Floats v) { return _mm512_cmp_ps_mask(v, v, _CMP_ORD_Q) == 0xffff; }
inline Mask HasNoBits(Ints v, int bits) { return _mm512_testn_epi32_mask(v, Set(bits)); }
inline Ints AndBits(Ints v, int bits) { return _mm512_and_si512(v, Set(bits)); }
inline Ints NearestInt(Floats v) { return _mm512_cvtps_epi32(v); }
inline Ints ShiftLeft(Ints v, int bits) {
  return _mm512_slli_epi32(v, static_cast<unsigned>(bits));
}
inline Ints ShiftRight(Ints v, int bits) {
  return _mm512_srli_epi32(v, static_cast<unsigned>(bits));
}
inline Ints ShiftRightSigned(Ints v, int bits) {
  return _mm512_srai_epi32(v, static_cast<unsigned>(bits));
}
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

}  // namespace
}  // namespace headrace::avx512
