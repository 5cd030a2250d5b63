// SPDX-License-Identifier: Apache-2.0
// Convolutions with NEON. Twin: the loops of convolve_rows.cc.
#include "headrace/kernels/filters/convolve_rows_levels.h"

#if defined(__aarch64__)

#include "headrace/kernels/float_lanes_neon.h"
// After its lanes:
#include "headrace/kernels/filters/convolve_rows_loops.h"

namespace headrace {

const ConvolveKernels* convolve_kernels_neon() { return &kKernels; }

}  // namespace headrace

#else

namespace headrace {
const ConvolveKernels* convolve_kernels_neon() { return nullptr; }
}  // namespace headrace

#endif
