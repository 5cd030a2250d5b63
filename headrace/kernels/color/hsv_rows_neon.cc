// SPDX-License-Identifier: Apache-2.0
// HSV with NEON. Twin: the loops of hsv_rows.cc.
#include "headrace/kernels/color/hsv_rows_levels.h"

#if defined(__aarch64__)

#include "headrace/kernels/float_lanes_neon.h"
// After its lanes:
#include "headrace/kernels/color/hsv_rows_loops.h"

namespace headrace {

const HsvKernels* hsv_kernels_neon() { return &kKernels; }

}  // namespace headrace

#else

namespace headrace {
const HsvKernels* hsv_kernels_neon() { return nullptr; }
}  // namespace headrace

#endif
