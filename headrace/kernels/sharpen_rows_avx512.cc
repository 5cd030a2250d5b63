// SPDX-License-Identifier: Apache-2.0
// Sharpening with AVX-512. Twin: the loops of sharpen_rows.cc.
#include "headrace/kernels/sharpen_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl"))), \
                             apply_to = function)
#else
// The intrinsics' own "undefined" operands set this off (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl")
#endif

namespace headrace {
namespace {

__m512i numbers_at(const uint8_t* from) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

__m512i three_at(const uint8_t* row) {
  return _mm512_add_epi32(_mm512_add_epi32(numbers_at(row - 1), numbers_at(row)),
                          numbers_at(row + 1));
}

__m512 blur_at(const ThreeRows& in, int x, __m512i center) {
  __m512i sum = _mm512_add_epi32(three_at(in.above + x), three_at(in.below + x));
  sum = _mm512_add_epi32(sum, three_at(in.row + x));
  sum = _mm512_add_epi32(sum, _mm512_slli_epi32(center, 2));
  const __m512i twice = _mm512_add_epi32(_mm512_slli_epi32(sum, 1), _mm512_set1_epi32(13));
  return _mm512_cvtepi32_ps(_mm512_srli_epi32(
      _mm512_mullo_epi32(twice, _mm512_set1_epi32(kThirteenthFactor)), kThirteenthShift));
}

void store(uint8_t* to, __m512 values) {
  values = _mm512_max_ps(_mm512_min_ps(values, _mm512_set1_ps(255)), _mm512_setzero_ps());
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(values)));
}

int as_torch(const ThreeRows& in, int width, float rest, uint8_t* out) {
  const __m512 weight = _mm512_set1_ps(rest);
  int x = 1;
  for (; x + 16 < width; x += 16) {
    const __m512i center = numbers_at(in.row + x);
    const __m512 value = _mm512_cvtepi32_ps(center);
    const __m512 difference = _mm512_sub_ps(blur_at(in, x, center), value);
    store(out + x, _mm512_fmadd_ps(difference, weight, value));
  }
  return x;
}

int as_pillow(const ThreeRows& in, int width, float factor, uint8_t* out) {
  const __m512 weight = _mm512_set1_ps(factor);
  int x = 1;
  for (; x + 16 < width; x += 16) {
    const __m512i center = numbers_at(in.row + x);
    const __m512 blur = blur_at(in, x, center);
    const __m512 difference = _mm512_sub_ps(_mm512_cvtepi32_ps(center), blur);
    store(out + x, _mm512_add_ps(blur, _mm512_mul_ps(weight, difference)));
  }
  return x;
}

constexpr SharpenKernels kKernels{as_torch, as_pillow};

}  // namespace

const SharpenKernels* sharpen_kernels_avx512() { return &kKernels; }

}  // namespace headrace

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace headrace {
const SharpenKernels* sharpen_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
