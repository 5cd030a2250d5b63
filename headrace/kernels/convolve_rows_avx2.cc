// SPDX-License-Identifier: Apache-2.0
// Convolutions with AVX2 and FMA. Twin: the loops of convolve_rows.cc.
#include "headrace/kernels/convolve_rows_levels.h"

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

// Several sums at a time: one alone would wait for its own last addition.
constexpr int kLanes = 8, kSums = 6;

void along(const float* in, const float* weights, int taps, int count, float* out) {
  int i = 0;
  for (; i + (kSums - 1) * kLanes < count; i += kSums * kLanes) {
    __m256 sum[kSums] = {};
    for (int t = 0; t < taps; ++t) {
      const __m256 weight = _mm256_set1_ps(weights[t]);
#pragma GCC unroll 6
      for (int s = 0; s < kSums; ++s) {
        sum[s] = _mm256_fmadd_ps(_mm256_loadu_ps(in + i + s * kLanes + t), weight, sum[s]);
      }
    }
#pragma GCC unroll 6
    for (int s = 0; s < kSums; ++s) _mm256_storeu_ps(out + i + s * kLanes, sum[s]);
  }
  for (; i < count; i += kLanes) {
    __m256 sum = _mm256_setzero_ps();
    for (int t = 0; t < taps; ++t) {
      sum = _mm256_fmadd_ps(_mm256_loadu_ps(in + i + t), _mm256_set1_ps(weights[t]), sum);
    }
    _mm256_storeu_ps(out + i, sum);
  }
}

void store(uint8_t* to, __m256 values) {
  const __m256i numbers = _mm256_cvtps_epi32(values);
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256(numbers, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
}

void across(const float* const rows[], const float* weights, int taps, int count, uint8_t* out) {
  int i = 0;
  for (; i + (kSums - 1) * kLanes < count; i += kSums * kLanes) {
    __m256 sum[kSums] = {};
    for (int t = 0; t < taps; ++t) {
      const __m256 weight = _mm256_set1_ps(weights[t]);
#pragma GCC unroll 6
      for (int s = 0; s < kSums; ++s) {
        sum[s] = _mm256_fmadd_ps(_mm256_loadu_ps(rows[t] + i + s * kLanes), weight, sum[s]);
      }
    }
#pragma GCC unroll 6
    for (int s = 0; s < kSums; ++s) store(out + i + s * kLanes, sum[s]);
  }
  for (; i < count; i += kLanes) {
    __m256 sum = _mm256_setzero_ps();
    for (int t = 0; t < taps; ++t) {
      sum = _mm256_fmadd_ps(_mm256_loadu_ps(rows[t] + i), _mm256_set1_ps(weights[t]), sum);
    }
    store(out + i, sum);
  }
}

constexpr ConvolveKernels kKernels{along, across};

}  // namespace

const ConvolveKernels* convolve_kernels_avx2() { return &kKernels; }

}  // namespace headrace

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace headrace {
const ConvolveKernels* convolve_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
