// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/audio/frame_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "headrace/kernels/audio/frame_kernels_levels.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/lanes/scalar.h"

#define HEADRACE_LEVEL scalar

namespace headrace::HEADRACE_LEVEL {
namespace {

inline void gather_rows(const float* from, int64_t, Floats (&v)[1]) { v[0] = *from; }
inline void scatter_rows(const Floats (&v)[1], int64_t, float* to) { *to = v[0]; }

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

// After its lanes:
#include "headrace/kernels/audio/frame_kernels_loops.h"

namespace headrace {

const FrameKernels& frame_kernels() {
  static const ByLevel<const FrameKernels*> by_level{&scalar::kKernels, frame_kernels_avx2(),
                                                     frame_kernels_avx512(), frame_kernels_neon()};
  return *by_level.in_force();
}

}  // namespace headrace
