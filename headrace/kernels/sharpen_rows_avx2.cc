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

#include "headrace/kernels/float_lanes_avx2.h"
// After its lanes:
#include "headrace/kernels/sharpen_rows_loops.h"

namespace headrace {

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
