// SPDX-License-Identifier: Apache-2.0
// Anchors against boxes with NEON. Twin: the loop of anchor_match.cc.
#include "headrace/kernels/boxes/anchor_match_levels.h"

#if defined(__aarch64__)

#include "headrace/kernels/float_lanes_neon.h"
// After its lanes:
#include "headrace/kernels/boxes/anchor_match_loops.h"

namespace headrace {

const AnchorKernels* anchor_kernels_neon() { return &kKernels; }

}  // namespace headrace

#else

namespace headrace {
const AnchorKernels* anchor_kernels_neon() { return nullptr; }
}  // namespace headrace

#endif
