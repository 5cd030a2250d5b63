// SPDX-License-Identifier: Apache-2.0
// Video's colours with AVX-512. Twin: the loops of yuv_rows.cc.
#include "headrace/kernels/video/yuv_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512vl,avx512vbmi");

namespace headrace {
namespace {

__m256i load_half(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

// The coefficients of 8-bit samples, in all lanes.
struct Lanes {
  explicit Lanes(const YuvCoefficients& by)
      : luma(_mm512_set1_epi16(by.luma)),
        offset(_mm512_set1_epi16(by.offset)),
        red_v(_mm512_set1_epi16(by.red_v)),
        green_u(_mm512_set1_epi16(by.green_u)),
        green_v(_mm512_set1_epi16(by.green_v)),
        blue_u(_mm512_set1_epi16(by.blue_u)) {}
  __m512i luma_of(__m512i eightfold) const {
    return _mm512_mulhi_epi16(_mm512_sub_epi16(eightfold, offset), luma);
  }
  __m512i luma, offset, red_v, green_u, green_v, blue_u;
};

// What 32 samples of chroma add to red, green and blue.
struct Added {
  Added(const uint8_t* u_row, const uint8_t* v_row, const Lanes& by) {
    const __m512i u = centered(u_row), v = centered(v_row);
    red = _mm512_mulhi_epi16(v, by.red_v);
    green = _mm512_add_epi16(_mm512_mulhi_epi16(u, by.green_u), _mm512_mulhi_epi16(v, by.green_v));
    blue = _mm512_mulhi_epi16(u, by.blue_u);
  }
  static __m512i centered(const uint8_t* row) {
    const __m512i words = _mm512_cvtepu8_epi16(load_half(row));
    return _mm512_sub_epi16(_mm512_slli_epi16(words, 3), _mm512_set1_epi16(1024));
  }
  __m512i red, green, blue;
};

// Note [Two columns to a sample of chroma]
void halved(const uint8_t* const yuv[3], int count, const YuvCoefficients& by,
            uint8_t* const rgb[3]) {
  const Lanes lanes(by);
  const __m512i mask = _mm512_set1_epi16(0xff << 3);
  const __m512i in_turn =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
  for (int i = 0; i < count; i += 64) {
    const Added added(yuv[1] + i / 2, yuv[2] + i / 2, lanes);
    const __m512i luma = _mm512_loadu_si512(yuv[0] + i);
    const __m512i even = lanes.luma_of(_mm512_and_si512(_mm512_slli_epi16(luma, 3), mask));
    const __m512i odd = lanes.luma_of(_mm512_and_si512(_mm512_srli_epi16(luma, 5), mask));
    const auto put = [&](uint8_t* to, __m512i chroma) {
      const __m512i apart =
          _mm512_packus_epi16(_mm512_add_epi16(even, chroma), _mm512_add_epi16(odd, chroma));
      _mm512_storeu_si512(to + i, _mm512_shuffle_epi8(apart, in_turn));
    };
    put(rgb[0], added.red);
    put(rgb[1], added.green);
    put(rgb[2], added.blue);
  }
}

__m512i eightfold(const uint8_t* row) {
  return _mm512_slli_epi16(_mm512_cvtepu8_epi16(load_half(row)), 3);
}

void whole(const uint8_t* const yuv[3], int count, const YuvCoefficients& by,
           uint8_t* const rgb[3]) {
  const Lanes lanes(by);
  const __m512i in_order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  for (int i = 0; i < count; i += 64) {
    const Added first(yuv[1] + i, yuv[2] + i, lanes);
    const Added second(yuv[1] + i + 32, yuv[2] + i + 32, lanes);
    const __m512i left = lanes.luma_of(eightfold(yuv[0] + i));
    const __m512i right = lanes.luma_of(eightfold(yuv[0] + i + 32));
    const auto put = [&](uint8_t* to, __m512i a, __m512i b) {
      const __m512i apart =
          _mm512_packus_epi16(_mm512_add_epi16(left, a), _mm512_add_epi16(right, b));
      _mm512_storeu_si512(to + i, _mm512_permutexvar_epi64(in_order, apart));
    };
    put(rgb[0], first.red, second.red);
    put(rgb[1], first.green, second.green);
    put(rgb[2], first.blue, second.blue);
  }
}

// The coefficients of wider samples.
struct DeepLanes {
  explicit DeepLanes(const DeepYuvCoefficients& by)
      : luma(_mm512_set1_epi32(by.luma)),
        luma_offset(_mm512_set1_epi32(by.luma_offset)),
        chroma_offset(_mm512_set1_epi32(by.chroma_offset)),
        red_v(_mm512_set1_epi32(by.red_v)),
        green_u(_mm512_set1_epi32(by.green_u)),
        green_v(_mm512_set1_epi32(by.green_v)),
        blue_u(_mm512_set1_epi32(by.blue_u)) {}
  // With the half that rounding takes.
  __m512i luma_of(__m512i samples) const {
    return _mm512_add_epi32(_mm512_mullo_epi32(_mm512_sub_epi32(samples, luma_offset), luma),
                            _mm512_set1_epi32(1 << (kDeepShift - 1)));
  }
  __m512i luma, luma_offset, chroma_offset, red_v, green_u, green_v, blue_u;
};

struct DeepAdded {
  DeepAdded(const uint16_t* u_row, const uint16_t* v_row, const DeepLanes& by) {
    const __m512i u = _mm512_sub_epi32(_mm512_cvtepu16_epi32(load_half(u_row)), by.chroma_offset);
    const __m512i v = _mm512_sub_epi32(_mm512_cvtepu16_epi32(load_half(v_row)), by.chroma_offset);
    red = _mm512_mullo_epi32(v, by.red_v);
    green = _mm512_add_epi32(_mm512_mullo_epi32(u, by.green_u), _mm512_mullo_epi32(v, by.green_v));
    blue = _mm512_mullo_epi32(u, by.blue_u);
  }
  __m512i red, green, blue;
};

__m512i rounded(__m512i sums) { return _mm512_srai_epi32(sums, kDeepShift); }

// Bytes of 16 numbers each, cut to 0 to 255.
__m128i bytes_of(__m512i numbers) {
  return _mm512_cvtusepi32_epi8(_mm512_max_epi32(numbers, _mm512_setzero_si512()));
}

// 32 columns at a time.
void deep_halved(const uint16_t* const yuv[3], int count, const DeepYuvCoefficients& by,
                 uint8_t* const rgb[3]) {
  const DeepLanes lanes(by);
  for (int i = 0; i < count; i += 32) {
    const DeepAdded added(yuv[1] + i / 2, yuv[2] + i / 2, lanes);
    const __m512i luma = _mm512_loadu_si512(yuv[0] + i);
    const __m512i even = lanes.luma_of(_mm512_and_si512(luma, _mm512_set1_epi32(0xffff)));
    const __m512i odd = lanes.luma_of(_mm512_srli_epi32(luma, 16));
    const auto put = [&](uint8_t* to, __m512i chroma) {
      const __m128i a = bytes_of(rounded(_mm512_add_epi32(even, chroma)));
      const __m128i b = bytes_of(rounded(_mm512_add_epi32(odd, chroma)));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm_unpacklo_epi8(a, b));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i + 16), _mm_unpackhi_epi8(a, b));
    };
    put(rgb[0], added.red);
    put(rgb[1], added.green);
    put(rgb[2], added.blue);
  }
}

// 16 columns at a time.
void deep_whole(const uint16_t* const yuv[3], int count, const DeepYuvCoefficients& by,
                uint8_t* const rgb[3]) {
  const DeepLanes lanes(by);
  for (int i = 0; i < count; i += 16) {
    const DeepAdded added(yuv[1] + i, yuv[2] + i, lanes);
    const __m512i luma = lanes.luma_of(_mm512_cvtepu16_epi32(load_half(yuv[0] + i)));
    const auto put = [&](uint8_t* to, __m512i chroma) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                       bytes_of(rounded(_mm512_add_epi32(luma, chroma))));
    };
    put(rgb[0], added.red);
    put(rgb[1], added.green);
    put(rgb[2], added.blue);
  }
}

constexpr YuvKernels kKernels{halved, whole, deep_halved, deep_whole};

}  // namespace

const YuvKernels* yuv_kernels_avx512() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const YuvKernels* yuv_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
