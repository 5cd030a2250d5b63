// SPDX-License-Identifier: Apache-2.0
// Sharpening with NEON. Twin: the loops of sharpen_rows.cc.
#include "headrace/kernels/filters/sharpen_rows_levels.h"

#if defined(__aarch64__)

#include "headrace/kernels/float_lanes_neon.h"
#include "headrace/kernels/word_lanes_neon.h"
// After its lanes:
#include "headrace/kernels/filters/sharpen_rows_loops.h"

namespace headrace {

const SharpenKernels* sharpen_kernels_neon() { return &kKernels; }

}  // namespace headrace

#else

namespace headrace {
const SharpenKernels* sharpen_kernels_neon() { return nullptr; }
}  // namespace headrace

#endif
