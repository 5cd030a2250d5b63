// SPDX-License-Identifier: Apache-2.0
// Sharpening with AVX2 and FMA. Twin: the loops of sharpen_rows.cc.
#include "headrace/kernels/filters/sharpen_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2,fma");

#include "headrace/kernels/float_lanes_avx2.h"
#include "headrace/kernels/word_lanes_avx2.h"
// After its lanes:
#include "headrace/kernels/filters/sharpen_rows_loops.h"

namespace headrace {

const SharpenKernels* sharpen_kernels_avx2() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const SharpenKernels* sharpen_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
