// SPDX-License-Identifier: Apache-2.0
// AVX-512: pixels from places that lanes name, and doubles. Beside float_lanes_avx512.h, and
// included after it in the same way. Internal to kernels/.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace headrace {
namespace {

// From 0 up to it. REQUIRES: end > 0.
inline Mask below(Numbers v, int end) { return _mm512_cmplt_epu32_mask(v, all(end)); }
inline Floats kept(Mask where, Floats v) { return _mm512_maskz_mov_ps(where, v); }
inline Numbers gathered(const uint32_t* from, Numbers at, Mask where, Numbers otherwise) {
  return _mm512_mask_i32gather_epi32(otherwise, where, at, from, 4);
}
// The pixel at each place, and the one after it. Black where not asked for.
inline void gather_pairs(const uint32_t* from, Numbers at, Mask where, Numbers& left,
                         Numbers& right) {
  const __m512i low = _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), where & 0xff,
                                                  _mm512_castsi512_si256(at), from, 4);
  const __m512i high = _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), where >> 8,
                                                   _mm512_extracti64x4_epi64(at, 1), from, 4);
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  left = _mm512_permutex2var_epi32(low, even, high);
  right = _mm512_permutex2var_epi32(low, _mm512_or_si512(even, all(1)), high);
}
// What takes this channel's byte out of each pixel.
inline Numbers picker(int channel) {
  const __m128i bytes = _mm_setr_epi8(0, -1, -1, -1, 4, -1, -1, -1, 8, -1, -1, -1, 12, -1, -1, -1);
  return _mm512_broadcast_i32x4(_mm_or_si128(bytes, _mm_set1_epi32(channel)));
}
struct Pickers {
  Pickers() {
    for (int c = 0; c < 4; ++c) of[c] = picker(c);
  }
  Numbers of[4];
};
inline Numbers picked(Numbers pixels, Numbers picker) {
  return _mm512_shuffle_epi8(pixels, picker);
}
inline Numbers transposed_lanes() {
  return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}
inline void store_plane(uint8_t* to, Numbers v) {
  _mm512_storeu_si512(to, _mm512_permutexvar_epi32(transposed_lanes(), v));
}
// Of four registers of pixels: each channel's bytes, as many as a register has. The two are each
// other's inverse.
inline void store_planes(const Numbers pixels[4], int channels, uint8_t* const out[], int64_t at) {
  const auto by_channel =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const Numbers p[4] = {
      _mm512_shuffle_epi8(pixels[0], by_channel), _mm512_shuffle_epi8(pixels[1], by_channel),
      _mm512_shuffle_epi8(pixels[2], by_channel), _mm512_shuffle_epi8(pixels[3], by_channel)};
  const Numbers low[2] = {_mm512_unpacklo_epi32(p[0], p[1]), _mm512_unpacklo_epi32(p[2], p[3])};
  const Numbers high[2] = {_mm512_unpackhi_epi32(p[0], p[1]), _mm512_unpackhi_epi32(p[2], p[3])};
  store_plane(out[0] + at, _mm512_unpacklo_epi64(low[0], low[1]));
  if (channels > 1) store_plane(out[1] + at, _mm512_unpackhi_epi64(low[0], low[1]));
  if (channels > 2) store_plane(out[2] + at, _mm512_unpacklo_epi64(high[0], high[1]));
  if (channels > 3) store_plane(out[3] + at, _mm512_unpackhi_epi64(high[0], high[1]));
}
inline void load_planes(const uint8_t* const planes[], int channels, int64_t at, Numbers otherwise,
                        Numbers pixels[4]) {
  const Numbers first =
      _mm512_permutexvar_epi32(transposed_lanes(), _mm512_loadu_si512(planes[0] + at));
  const Numbers second = channels > 1 ? _mm512_permutexvar_epi32(transposed_lanes(),
                                                                 _mm512_loadu_si512(planes[1] + at))
                                      : _mm512_setzero_si512();
  const Numbers third = channels > 2 ? _mm512_permutexvar_epi32(transposed_lanes(),
                                                                _mm512_loadu_si512(planes[2] + at))
                                     : _mm512_setzero_si512();
  const Numbers last = channels > 3 ? _mm512_permutexvar_epi32(transposed_lanes(),
                                                               _mm512_loadu_si512(planes[3] + at))
                                    : otherwise;
  const Numbers low[2] = {_mm512_unpacklo_epi8(first, second), _mm512_unpacklo_epi8(third, last)};
  const Numbers high[2] = {_mm512_unpackhi_epi8(first, second), _mm512_unpackhi_epi8(third, last)};
  pixels[0] = _mm512_unpacklo_epi16(low[0], low[1]);
  pixels[1] = _mm512_unpackhi_epi16(low[0], low[1]);
  pixels[2] = _mm512_unpacklo_epi16(high[0], high[1]);
  pixels[3] = _mm512_unpackhi_epi16(high[0], high[1]);
}
inline Mask first_lanes(int count) {
  return static_cast<Mask>(count < kLanes ? (1u << count) - 1 : 0xffff);
}
inline bool any(Mask where) { return where != 0; }
inline Mask without(Mask a, Mask b) { return static_cast<Mask>(a & ~b); }
inline Mask equal(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
inline Mask less(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
inline bool are_numbers(Floats v) { return _mm512_cmp_ps_mask(v, v, _CMP_ORD_Q) == 0xffff; }
inline Mask without_bits(Numbers v, int bits) { return _mm512_testn_epi32_mask(v, all(bits)); }
inline Numbers bits_of(Floats v) { return _mm512_castps_si512(v); }
inline Numbers masked(Numbers v, int bits) { return _mm512_and_si512(v, all(bits)); }
inline Numbers nearest(Floats v) { return _mm512_cvtps_epi32(v); }
inline Numbers shifted_up(Numbers v, int bits) {
  return _mm512_slli_epi32(v, static_cast<unsigned>(bits));
}
inline Numbers shifted_down(Numbers v, int bits) {
  return _mm512_srli_epi32(v, static_cast<unsigned>(bits));
}
inline Numbers shifted_down_signed(Numbers v, int bits) {
  return _mm512_srai_epi32(v, static_cast<unsigned>(bits));
}
inline Numbers low_bytes(Numbers v) { return _mm512_and_si512(v, all(255)); }
// The lowest byte of each.
inline void store_low_bytes(uint8_t* to, Numbers v) { store_bytes(to, v); }

// As many as there are doubles in a register.
using Doubles = __m512d;
using Few = __m256i;
using FewMask = __mmask8;
constexpr int kDoubles = 8;

inline Doubles all(double v) { return _mm512_set1_pd(v); }
inline Few few(int v) { return _mm256_set1_epi32(v); }
inline Doubles lane_doubles() { return _mm512_setr_pd(0, 1, 2, 3, 4, 5, 6, 7); }
inline Doubles load(const double* from) { return _mm512_loadu_pd(from); }
inline void store(double* to, Doubles v) { _mm512_storeu_pd(to, v); }
inline Doubles sum(Doubles a, Doubles b) { return _mm512_add_pd(a, b); }
inline Doubles difference(Doubles a, Doubles b) { return _mm512_sub_pd(a, b); }
inline Doubles product(Doubles a, Doubles b) { return _mm512_mul_pd(a, b); }
inline Doubles quotient(Doubles a, Doubles b) { return _mm512_div_pd(a, b); }
inline Doubles floor_of(Doubles v) {
  return _mm512_roundscale_pd(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
inline Few cut_off(Doubles v) { return _mm512_cvttpd_epi32(v); }
inline Doubles doubles_of(Few v) { return _mm512_cvtepi32_pd(v); }
inline Floats floats_of(Doubles low, Doubles high) {
  return _mm512_castpd_ps(
      _mm512_insertf64x4(_mm512_castps_pd(_mm512_castps256_ps512(_mm512_cvtpd_ps(low))),
                         _mm256_castps_pd(_mm512_cvtpd_ps(high)), 1));
}
inline Numbers joined_halves(Few low, Few high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
inline Mask joined_halves(FewMask low, FewMask high) { return static_cast<Mask>(low | high << 8); }
// From 0 up to it.
inline FewMask below(Doubles v, double end) {
  return static_cast<FewMask>(_mm512_cmp_pd_mask(v, _mm512_setzero_pd(), _CMP_GE_OQ) &
                              _mm512_cmp_pd_mask(v, all(end), _CMP_LT_OQ));
}
inline FewMask both(FewMask a, FewMask b) { return static_cast<FewMask>(a & b); }
inline Few chosen(FewMask where, Few a, Few otherwise) {
  return _mm256_mask_mov_epi32(otherwise, where, a);
}
inline Few gathered(const uint32_t* from, Few at, FewMask where, Few otherwise) {
  return _mm256_mmask_i32gather_epi32(otherwise, where, at, from, 4);
}
inline Few sum(Few a, Few b) { return _mm256_add_epi32(a, b); }
inline Few product(Few a, Few b) { return _mm256_mullo_epi32(a, b); }
inline Few low_bytes(Few v, int shift) {
  return _mm256_and_si256(_mm256_srli_epi32(v, shift), few(255));
}
inline void store(int32_t* to, Few v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }
inline void store_low_bytes(uint8_t* to, Few v) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm256_cvtepi32_epi8(v));
}

}  // namespace
}  // namespace headrace
