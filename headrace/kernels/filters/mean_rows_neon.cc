// SPDX-License-Identifier: Apache-2.0
// Means with NEON. Twin: the loops of mean_rows.cc.
#include "headrace/kernels/filters/mean_rows_levels.h"

#if defined(__aarch64__)

#include "headrace/kernels/float_lanes_neon.h"
// After its lanes:
#include "headrace/kernels/filters/mean_rows_loops.h"

namespace headrace {

const MeanKernels* mean_kernels_neon() { return &kKernels; }

}  // namespace headrace

#else

namespace headrace {
const MeanKernels* mean_kernels_neon() { return nullptr; }
}  // namespace headrace

#endif
