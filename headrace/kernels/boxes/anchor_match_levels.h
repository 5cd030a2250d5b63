// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for anchor_match.cc. Internal to kernels/.
#pragma once

#include "headrace/kernels/boxes/anchor_match.h"

namespace headrace {

struct AnchorKernels {
  int32_t (*match)(const AnchorColumns& anchors, const float* box, int32_t row,
                   AnchorMatches& matches);
};

// Null where the architecture has no such level.
const AnchorKernels* anchor_kernels_avx2();
const AnchorKernels* anchor_kernels_avx512();
const AnchorKernels* anchor_kernels_neon();

}  // namespace headrace
