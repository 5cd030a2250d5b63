// SPDX-License-Identifier: Apache-2.0
// Colour rows with AVX-512. Twin: the loops of color_rows.cc.
#include "headrace/kernels/color_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/color_rows.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl"))), \
                             apply_to = function)
#else
// The intrinsics' own "undefined" operands set this off (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl")
#endif

namespace headrace {
namespace {

__m512 floats_at(const uint8_t* from) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}

void luma_from_rgb(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  for (int i = 0; i < count; i += 16) {
    __m512 sum = _mm512_mul_ps(floats_at(rgb[0] + i), _mm512_set1_ps(kLumaRed));
    sum = _mm512_fmadd_ps(floats_at(rgb[1] + i), _mm512_set1_ps(kLumaGreen), sum);
    sum = _mm512_fmadd_ps(floats_at(rgb[2] + i), _mm512_set1_ps(kLumaBlue), sum);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(gray + i),
                     _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(sum)));
  }
}

constexpr ColorRowKernels kKernels{luma_from_rgb};

}  // namespace

const ColorRowKernels* color_row_kernels_avx512() { return &kKernels; }

}  // namespace headrace

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace headrace {
const ColorRowKernels* color_row_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
