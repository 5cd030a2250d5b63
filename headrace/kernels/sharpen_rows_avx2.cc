// SPDX-License-Identifier: Apache-2.0
// Sharpening with AVX2 and FMA. Twin: the loops of sharpen_rows.cc.
#include "headrace/kernels/sharpen_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

namespace headrace {
namespace {

__m256i numbers_at(const uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}

__m256i three_at(const uint8_t* row) {
  return _mm256_add_epi32(_mm256_add_epi32(numbers_at(row - 1), numbers_at(row)),
                          numbers_at(row + 1));
}

__m256 blur_at(const ThreeRows& in, int x, __m256i center) {
  __m256i sum = _mm256_add_epi32(three_at(in.above + x), three_at(in.below + x));
  sum = _mm256_add_epi32(sum, three_at(in.row + x));
  sum = _mm256_add_epi32(sum, _mm256_slli_epi32(center, 2));
  const __m256i twice = _mm256_add_epi32(_mm256_slli_epi32(sum, 1), _mm256_set1_epi32(13));
  return _mm256_cvtepi32_ps(_mm256_srli_epi32(
      _mm256_mullo_epi32(twice, _mm256_set1_epi32(kThirteenthFactor)), kThirteenthShift));
}

// Packing saturates below 0.
void store(uint8_t* to, __m256 values) {
  const __m256i numbers = _mm256_cvttps_epi32(_mm256_min_ps(values, _mm256_set1_ps(255)));
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256(numbers, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
}

int as_torch(const ThreeRows& in, int width, float rest, uint8_t* out) {
  const __m256 weight = _mm256_set1_ps(rest);
  int x = 1;
  for (; x + 8 < width; x += 8) {
    const __m256i center = numbers_at(in.row + x);
    const __m256 value = _mm256_cvtepi32_ps(center);
    const __m256 difference = _mm256_sub_ps(blur_at(in, x, center), value);
    store(out + x, _mm256_fmadd_ps(difference, weight, value));
  }
  return x;
}

int as_pillow(const ThreeRows& in, int width, float factor, uint8_t* out) {
  const __m256 weight = _mm256_set1_ps(factor);
  int x = 1;
  for (; x + 8 < width; x += 8) {
    const __m256i center = numbers_at(in.row + x);
    const __m256 blur = blur_at(in, x, center);
    const __m256 difference = _mm256_sub_ps(_mm256_cvtepi32_ps(center), blur);
    store(out + x, _mm256_add_ps(blur, _mm256_mul_ps(weight, difference)));
  }
  return x;
}

constexpr SharpenKernels kKernels{as_torch, as_pillow};

}  // namespace

const SharpenKernels* sharpen_kernels_avx2() { return &kKernels; }

}  // namespace headrace

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace headrace {
const SharpenKernels* sharpen_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
