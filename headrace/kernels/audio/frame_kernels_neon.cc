// SPDX-License-Identifier: Apache-2.0
// Frames of a signal with NEON. Twin: the loops in frame_kernels.cc.
#include "headrace/kernels/audio/frame_kernels_levels.h"

#if defined(__aarch64__)

#include <algorithm>
#include <limits>
#include <utility>

#define HEADRACE_LEVEL neon
#include "headrace/kernels/lanes/neon.h"

namespace headrace::HEADRACE_LEVEL {
namespace {

inline void transpose(Floats (&v)[4]) {
  const float32x4_t even01 = vtrn1q_f32(v[0], v[1]), odd01 = vtrn2q_f32(v[0], v[1]);
  const float32x4_t even23 = vtrn1q_f32(v[2], v[3]), odd23 = vtrn2q_f32(v[2], v[3]);
  v[0] = vcombine_f32(vget_low_f32(even01), vget_low_f32(even23));
  v[1] = vcombine_f32(vget_low_f32(odd01), vget_low_f32(odd23));
  v[2] = vcombine_f32(vget_high_f32(even01), vget_high_f32(even23));
  v[3] = vcombine_f32(vget_high_f32(odd01), vget_high_f32(odd23));
}
// Four samples of each frame: v[k] has sample k of all.
inline void gather_rows(const float* from, int64_t hop, Floats (&v)[4]) {
  for (int i = 0; i < 4; ++i) v[i] = Load(from + i * hop);
  transpose(v);
}
inline void scatter_rows(Floats (&v)[4], int64_t hop, float* to) {
  transpose(v);
  for (int i = 0; i < 4; ++i) Store(to + i * hop, v[i]);
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

// After its lanes:
#include "headrace/kernels/audio/frame_kernels_loops.h"

namespace headrace {

const FrameKernels* frame_kernels_neon() { return &neon::kKernels; }

}  // namespace headrace

#else

namespace headrace {
const FrameKernels* frame_kernels_neon() { return nullptr; }
}  // namespace headrace

#endif
