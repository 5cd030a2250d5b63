// SPDX-License-Identifier: Apache-2.0
// Rows with NEON. Twin: the loops of rows.cc.
#include "headrace/kernels/rows_levels.h"

#if defined(__aarch64__)

#include <arm_neon.h>

namespace headrace {
namespace {

int deinterleave3(const uint8_t* in, int count, uint8_t* const out[]) {
  int i = 0;
  for (; i + 16 <= count; i += 16, in += 48) {
    const uint8x16x3_t planes = vld3q_u8(in);
    for (int c = 0; c < 3; ++c) vst1q_u8(out[c] + i, planes.val[c]);
  }
  return i;
}

int mirror(const uint8_t* in, int count, uint8_t* out) {
  int i = 0;
  for (; i + 16 <= count; i += 16) {
    const uint8x16_t halves = vrev64q_u8(vld1q_u8(in + count - 16 - i));
    vst1q_u8(out + i, vextq_u8(halves, halves, 8));
  }
  return i;
}

constexpr RowKernels kKernels{deinterleave3, mirror};

}  // namespace

const RowKernels* row_kernels_neon() { return &kKernels; }

}  // namespace headrace

#else

namespace headrace {
const RowKernels* row_kernels_neon() { return nullptr; }
}  // namespace headrace

#endif
