// SPDX-License-Identifier: Apache-2.0
// Warps with AVX2 and FMA. Twin: the loops of warp_rows.cc.
#include "headrace/kernels/warps/warp_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

#define HEADRACE_LEVEL avx2

HEADRACE_TARGET("avx2,fma");

#include "headrace/kernels/lanes/avx2.h"
#include "headrace/kernels/lanes/gather_avx2.h"
// After its lanes:
#include "headrace/kernels/warps/warp_rows_pillow_loops.h"
// And last:
#include "headrace/kernels/warps/warp_rows_loops.h"

namespace headrace {

const WarpKernels* warp_kernels_avx2() { return &avx2::kWarpKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const WarpKernels* warp_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
