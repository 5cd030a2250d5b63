// SPDX-License-Identifier: Apache-2.0
// Convolutions with AVX-512. Twin: the loops of convolve_rows.cc.
#include "headrace/kernels/convolve_rows_levels.h"

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

// Several sums at a time: one alone would wait for its own last addition.
constexpr int kLanes = 16, kSums = 4;

void along(const float* in, const float* weights, int taps, int count, float* out) {
  int i = 0;
  for (; i + (kSums - 1) * kLanes < count; i += kSums * kLanes) {
    __m512 sum[kSums] = {};
    for (int t = 0; t < taps; ++t) {
      const __m512 weight = _mm512_set1_ps(weights[t]);
#pragma GCC unroll 4
      for (int s = 0; s < kSums; ++s) {
        sum[s] = _mm512_fmadd_ps(_mm512_loadu_ps(in + i + s * kLanes + t), weight, sum[s]);
      }
    }
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) _mm512_storeu_ps(out + i + s * kLanes, sum[s]);
  }
  for (; i < count; i += kLanes) {
    __m512 sum = _mm512_setzero_ps();
    for (int t = 0; t < taps; ++t) {
      sum = _mm512_fmadd_ps(_mm512_loadu_ps(in + i + t), _mm512_set1_ps(weights[t]), sum);
    }
    _mm512_storeu_ps(out + i, sum);
  }
}

void store(uint8_t* to, __m512 values) {
  const __m512i numbers = _mm512_max_epi32(_mm512_cvtps_epi32(values), _mm512_setzero_si512());
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtusepi32_epi8(numbers));
}

void across(const float* const rows[], const float* weights, int taps, int count, uint8_t* out) {
  int i = 0;
  for (; i + (kSums - 1) * kLanes < count; i += kSums * kLanes) {
    __m512 sum[kSums] = {};
    for (int t = 0; t < taps; ++t) {
      const __m512 weight = _mm512_set1_ps(weights[t]);
#pragma GCC unroll 4
      for (int s = 0; s < kSums; ++s) {
        sum[s] = _mm512_fmadd_ps(_mm512_loadu_ps(rows[t] + i + s * kLanes), weight, sum[s]);
      }
    }
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) store(out + i + s * kLanes, sum[s]);
  }
  for (; i < count; i += kLanes) {
    __m512 sum = _mm512_setzero_ps();
    for (int t = 0; t < taps; ++t) {
      sum = _mm512_fmadd_ps(_mm512_loadu_ps(rows[t] + i), _mm512_set1_ps(weights[t]), sum);
    }
    store(out + i, sum);
  }
}

constexpr ConvolveKernels kKernels{along, across};

}  // namespace

const ConvolveKernels* convolve_kernels_avx512() { return &kKernels; }

}  // namespace headrace

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace headrace {
const ConvolveKernels* convolve_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
