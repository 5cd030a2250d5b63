// SPDX-License-Identifier: Apache-2.0
// Means with AVX2 and FMA. Twin: the loops of mean_rows.cc.
#include "headrace/kernels/mean_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#include "headrace/kernels/float_lanes_avx2.h"

namespace headrace {
namespace {

inline Numbers subtracted(Numbers a, Numbers b) { return _mm256_sub_epi32(a, b); }
inline Numbers least_of(Numbers a, Numbers b) { return _mm256_min_epu32(a, b); }
inline Numbers common(Numbers a, Numbers b) { return _mm256_and_si256(a, b); }

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/mean_rows_loops.h"

namespace headrace {

const MeanKernels* mean_kernels_avx2() { return &kKernels; }

}  // namespace headrace

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace headrace {
const MeanKernels* mean_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
