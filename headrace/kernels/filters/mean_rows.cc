// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/filters/mean_rows.h"

#include <algorithm>
#include <cstddef>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/float_lanes_scalar.h"

// After its lanes:
#include "headrace/kernels/filters/mean_rows_loops.h"

namespace headrace {

void mean_row(const uint8_t* const rows[], int n, int count, uint8_t* out) {
  static const ByLevel<const MeanKernels*> by_level{&kKernels, mean_kernels_avx2(),
                                                    mean_kernels_avx512(), mean_kernels_neon()};
  by_level.in_force()->mean(rows, n, count, out);
}

}  // namespace headrace
