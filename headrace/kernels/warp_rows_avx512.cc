// SPDX-License-Identifier: Apache-2.0
// Warps with AVX-512. Twin: the loops of warp_rows.cc.
#include "headrace/kernels/warp_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl"))), \
                             apply_to = function)
#else
// The intrinsics' own "undefined" operands set this off (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl")
#endif

#include "headrace/kernels/float_lanes_avx512.h"
#include "headrace/kernels/gather_lanes_avx512.h"
// After its lanes:
#include "headrace/kernels/warp_rows_loops.h"

namespace headrace {

const WarpKernels* warp_kernels_avx512() { return &kWarpKernels; }

}  // namespace headrace

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace headrace {
const WarpKernels* warp_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
