// SPDX-License-Identifier: Apache-2.0
// Means with AVX-512. Twin: the loops of mean_rows.cc.
#include "headrace/kernels/mean_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512vl");

#include "headrace/kernels/float_lanes_avx512.h"

namespace headrace {
namespace {

inline Numbers subtracted(Numbers a, Numbers b) { return _mm512_sub_epi32(a, b); }
inline Numbers least_of(Numbers a, Numbers b) { return _mm512_min_epu32(a, b); }
inline Numbers common(Numbers a, Numbers b) { return _mm512_and_si512(a, b); }

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/mean_rows_loops.h"

namespace headrace {

const MeanKernels* mean_kernels_avx512() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const MeanKernels* mean_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
