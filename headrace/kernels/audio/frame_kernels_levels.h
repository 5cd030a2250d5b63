// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for frame_kernels.cc. Internal to kernels/.
#pragma once

#include "headrace/kernels/audio/frame_kernels.h"

namespace headrace {

// Null where the architecture has no such level.
const FrameKernels* frame_kernels_avx2();
const FrameKernels* frame_kernels_avx512();
const FrameKernels* frame_kernels_neon();

}  // namespace headrace
