// SPDX-License-Identifier: Apache-2.0
// Means with AVX2 and FMA. Twin: the loops of mean_rows.cc.
#include "headrace/kernels/filters/mean_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2,fma");

#include "headrace/kernels/float_lanes_avx2.h"
// After its lanes:
#include "headrace/kernels/filters/mean_rows_loops.h"

namespace headrace {

const MeanKernels* mean_kernels_avx2() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const MeanKernels* mean_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
