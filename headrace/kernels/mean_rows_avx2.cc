// SPDX-License-Identifier: Apache-2.0
// Means with AVX2 and FMA. Twin: the loops of mean_rows.cc.
#include "headrace/kernels/mean_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2,fma");

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

HEADRACE_TARGET_END;

#else

namespace headrace {
const MeanKernels* mean_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
