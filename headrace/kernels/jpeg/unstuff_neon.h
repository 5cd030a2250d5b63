// SPDX-License-Identifier: Apache-2.0
// Stuffed zeros left out with NEON: copies 16 bytes, and goes on after the first 0xff of them.
// Its scalar reference: unstuff.cc. Internal to kernels/.

#include <arm_neon.h>

namespace headrace::neon {
namespace {

Unstuffed prefix(const uint8_t* in, size_t size, uint8_t* out) {
  Unstuffed at;
  while (at.read + 17 <= size) {
    const uint8x16_t bytes = vld1q_u8(in + at.read);
    vst1q_u8(out + at.written, bytes);
    // Four bits for each byte, which is what one instruction narrows to.
    const uint8x16_t marked = vceqq_u8(bytes, vdupq_n_u8(0xff));
    const uint64_t marks =
        vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(marked), 4)), 0);
    if (marks == 0) {
      at.read += 16;
      at.written += 16;
      continue;
    }
    const int before = __builtin_ctzll(marks) / 4;
    at.read += before;
    at.written += before;
    if (in[at.read + 1] != 0) break;
    at.read += 2;
    at.written += 1;
  }
  return at;
}

}  // namespace
}  // namespace headrace::neon
