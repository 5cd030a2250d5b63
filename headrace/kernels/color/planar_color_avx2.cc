// SPDX-License-Identifier: Apache-2.0
// Planar colour with AVX2. Twin: the loops of planar_color.cc.
#include "headrace/kernels/color/planar_color_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2");

namespace headrace {
namespace {

__m256i load(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
void store(uint8_t* to, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }

__m256i unpacked(__m256i a, __m256i b, int half) {
  return half ? _mm256_unpackhi_epi8(a, b) : _mm256_unpacklo_epi8(a, b);
}

// Note [YCbCr in 16 bits]
void rgb_from_ycc(const uint8_t* const ycc[3], int count, uint8_t* const rgb[3]) {
  const __m256i center = _mm256_set1_epi8(-128), zero = _mm256_setzero_si256();
  for (int i = 0; i < count; i += 32) {
    const __m256i luma = load(ycc[0] + i);
    const __m256i u = _mm256_xor_si256(load(ycc[1] + i), center);
    const __m256i v = _mm256_xor_si256(load(ycc[2] + i), center);
    __m256i red[2], green[2], blue[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256i y = unpacked(luma, zero, half), uv = unpacked(u, v, half);
      const auto sum = [&](short weights) {
        return _mm256_maddubs_epi16(_mm256_set1_epi16(weights), uv);
      };
      red[half] =
          _mm256_add_epi16(y, _mm256_mulhrs_epi16(sum(kRedPair), _mm256_set1_epi16(kRedFactor)));
      blue[half] =
          _mm256_add_epi16(y, _mm256_mulhrs_epi16(sum(kBluePair), _mm256_set1_epi16(kBlueFactor)));
      const __m256i low = _mm256_srai_epi16(
          _mm256_sub_epi16(_mm256_set1_epi16(kGreenRound), sum(kGreenLowPair)), 8);
      const __m256i offset = _mm256_sub_epi16(low, sum(kGreenHighPair));
      green[half] = _mm256_add_epi16(y, _mm256_srai_epi16(offset, 7));
    }
    store(rgb[0] + i, _mm256_packus_epi16(red[0], red[1]));
    store(rgb[1] + i, _mm256_packus_epi16(green[0], green[1]));
    store(rgb[2] + i, _mm256_packus_epi16(blue[0], blue[1]));
  }
}

void gray_from_rgb(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  const __m256i zero = _mm256_setzero_si256(), round = _mm256_set1_epi32(kGrayRound);
  const __m256i red_green = _mm256_set1_epi32(kGrayRed | kGrayHalfGreen << 16);
  const __m256i green_blue = _mm256_set1_epi32(kGrayHalfGreen | kGrayBlue << 16);
  for (int i = 0; i < count; i += 32) {
    const __m256i r = load(rgb[0] + i), g = load(rgb[1] + i), b = load(rgb[2] + i);
    __m256i words[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256i r16 = unpacked(r, zero, half), g16 = unpacked(g, zero, half),
                    b16 = unpacked(b, zero, half);
      const auto weighted = [&](__m256i rg, __m256i gb) {
        const __m256i sum =
            _mm256_add_epi32(_mm256_madd_epi16(rg, red_green), _mm256_madd_epi16(gb, green_blue));
        return _mm256_srai_epi32(_mm256_add_epi32(sum, round), 16);
      };
      words[half] = _mm256_packs_epi32(
          weighted(_mm256_unpacklo_epi16(r16, g16), _mm256_unpacklo_epi16(g16, b16)),
          weighted(_mm256_unpackhi_epi16(r16, g16), _mm256_unpackhi_epi16(g16, b16)));
    }
    store(gray + i, _mm256_packus_epi16(words[0], words[1]));
  }
}

constexpr ColorKernels kKernels{rgb_from_ycc, gray_from_rgb};

}  // namespace

const ColorKernels* color_kernels_avx2() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const ColorKernels* color_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
