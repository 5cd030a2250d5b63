// SPDX-License-Identifier: Apache-2.0
// Medians with NEON. Twin: the loops of median_rows.cc.
#include "headrace/kernels/filters/median_rows_levels.h"

#if defined(__aarch64__)

#include <arm_neon.h>

namespace headrace {
namespace {

using Bytes = uint8x16_t;
constexpr int kBytes = 16;

inline Bytes bytes_at(const uint8_t* from) { return vld1q_u8(from); }
inline void store(uint8_t* to, Bytes v) { vst1q_u8(to, v); }
inline Bytes least_of(Bytes a, Bytes b) { return vminq_u8(a, b); }
inline Bytes most_of(Bytes a, Bytes b) { return vmaxq_u8(a, b); }

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/filters/median_rows_loops.h"

namespace headrace {

const MedianKernels* median_kernels_neon() { return &kKernels; }

}  // namespace headrace

#else

namespace headrace {
const MedianKernels* median_kernels_neon() { return nullptr; }
}  // namespace headrace

#endif
