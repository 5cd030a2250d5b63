// SPDX-License-Identifier: Apache-2.0
// Convolutions with AVX-512. Twin: the loops of convolve_rows.cc.
#include "headrace/kernels/filters/convolve_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512vl");

#include "headrace/kernels/float_lanes_avx512.h"
// After its lanes:
#include "headrace/kernels/filters/convolve_rows_loops.h"

namespace headrace {

const ConvolveKernels* convolve_kernels_avx512() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const ConvolveKernels* convolve_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
