// SPDX-License-Identifier: Apache-2.0
// Colour rows with AVX2 and FMA. Twin: the loops of color_rows.cc.
#include "headrace/kernels/color_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/color_rows.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

namespace headrace {
namespace {

__m256 floats_at(const uint8_t* from) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}

__m256i luma_at(const uint8_t* const rgb[3], int i) {
  __m256 sum = _mm256_mul_ps(floats_at(rgb[0] + i), _mm256_set1_ps(kLumaRed));
  sum = _mm256_fmadd_ps(floats_at(rgb[1] + i), _mm256_set1_ps(kLumaGreen), sum);
  sum = _mm256_fmadd_ps(floats_at(rgb[2] + i), _mm256_set1_ps(kLumaBlue), sum);
  return _mm256_cvttps_epi32(sum);
}

void luma_from_rgb(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (int i = 0; i < count; i += 32) {
    const __m256i low = _mm256_packus_epi32(luma_at(rgb, i), luma_at(rgb, i + 8));
    const __m256i high = _mm256_packus_epi32(luma_at(rgb, i + 16), luma_at(rgb, i + 24));
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), in_order);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(gray + i), bytes);
  }
}

constexpr ColorRowKernels kKernels{luma_from_rgb};

}  // namespace

const ColorRowKernels* color_row_kernels_avx2() { return &kKernels; }

}  // namespace headrace

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace headrace {
const ColorRowKernels* color_row_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
