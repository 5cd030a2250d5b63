// SPDX-License-Identifier: Apache-2.0
// Planar colour with AVX-512. Twin: the loops of planar_color.cc.
#include "headrace/kernels/color/planar_color_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512vl,avx512vnni");

namespace headrace {
namespace {

__m512i unpacked(__m512i a, __m512i b, int half) {
  return half ? _mm512_unpackhi_epi8(a, b) : _mm512_unpacklo_epi8(a, b);
}

// Note [YCbCr in 16 bits]
void rgb_from_ycc(const uint8_t* const ycc[3], int count, uint8_t* const rgb[3]) {
  const __m512i center = _mm512_set1_epi8(-128), zero = _mm512_setzero_si512();
  for (int i = 0; i < count; i += 64) {
    const __m512i luma = _mm512_loadu_si512(ycc[0] + i);
    const __m512i u = _mm512_xor_si512(_mm512_loadu_si512(ycc[1] + i), center);
    const __m512i v = _mm512_xor_si512(_mm512_loadu_si512(ycc[2] + i), center);
    __m512i red[2], green[2], blue[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m512i y = unpacked(luma, zero, half), uv = unpacked(u, v, half);
      const auto sum = [&](short weights) {
        return _mm512_maddubs_epi16(_mm512_set1_epi16(weights), uv);
      };
      red[half] =
          _mm512_add_epi16(y, _mm512_mulhrs_epi16(sum(kRedPair), _mm512_set1_epi16(kRedFactor)));
      blue[half] =
          _mm512_add_epi16(y, _mm512_mulhrs_epi16(sum(kBluePair), _mm512_set1_epi16(kBlueFactor)));
      const __m512i low = _mm512_srai_epi16(
          _mm512_sub_epi16(_mm512_set1_epi16(kGreenRound), sum(kGreenLowPair)), 8);
      const __m512i offset = _mm512_sub_epi16(low, sum(kGreenHighPair));
      green[half] = _mm512_add_epi16(y, _mm512_srai_epi16(offset, 7));
    }
    _mm512_storeu_si512(rgb[0] + i, _mm512_packus_epi16(red[0], red[1]));
    _mm512_storeu_si512(rgb[1] + i, _mm512_packus_epi16(green[0], green[1]));
    _mm512_storeu_si512(rgb[2] + i, _mm512_packus_epi16(blue[0], blue[1]));
  }
}

void gray_from_rgb(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  const __m512i zero = _mm512_setzero_si512(), round = _mm512_set1_epi32(kGrayRound);
  const __m512i red_green = _mm512_set1_epi32(kGrayRed | kGrayHalfGreen << 16);
  const __m512i green_blue = _mm512_set1_epi32(kGrayHalfGreen | kGrayBlue << 16);
  for (int i = 0; i < count; i += 64) {
    const __m512i r = _mm512_loadu_si512(rgb[0] + i), g = _mm512_loadu_si512(rgb[1] + i),
                  b = _mm512_loadu_si512(rgb[2] + i);
    __m512i words[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m512i r16 = unpacked(r, zero, half), g16 = unpacked(g, zero, half),
                    b16 = unpacked(b, zero, half);
      const auto weighted = [&](__m512i rg, __m512i gb) {
        const __m512i sum =
            _mm512_dpwssd_epi32(_mm512_dpwssd_epi32(round, rg, red_green), gb, green_blue);
        return _mm512_srai_epi32(sum, 16);
      };
      words[half] = _mm512_packs_epi32(
          weighted(_mm512_unpacklo_epi16(r16, g16), _mm512_unpacklo_epi16(g16, b16)),
          weighted(_mm512_unpackhi_epi16(r16, g16), _mm512_unpackhi_epi16(g16, b16)));
    }
    _mm512_storeu_si512(gray + i, _mm512_packus_epi16(words[0], words[1]));
  }
}

constexpr ColorKernels kKernels{rgb_from_ycc, gray_from_rgb};

}  // namespace

const ColorKernels* color_kernels_avx512() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const ColorKernels* color_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
