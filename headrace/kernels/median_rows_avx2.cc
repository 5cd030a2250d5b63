// SPDX-License-Identifier: Apache-2.0
// Medians with AVX2 and FMA. Twin: the loops of median_rows.cc.
#include "headrace/kernels/median_rows_levels.h"

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

using Bytes = __m256i;
constexpr int kBytes = 32;

inline Bytes bytes_at(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline void store(uint8_t* to, Bytes v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }
inline Bytes least_of(Bytes a, Bytes b) { return _mm256_min_epu8(a, b); }
inline Bytes most_of(Bytes a, Bytes b) { return _mm256_max_epu8(a, b); }

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/median_rows_loops.h"

namespace headrace {

const MedianKernels* median_kernels_avx2() { return &kKernels; }

}  // namespace headrace

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace headrace {
const MedianKernels* median_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
