// SPDX-License-Identifier: Apache-2.0
// Upsampling with NEON. The scalar reference and the other SIMD levels are in upsample.cc. For h2v2
// libjpeg-turbo computes each column's weighted sum of two samples three times, because neighbors
// need it, too; here it is computed once, and neighbors come from registers: 26 instructions for 32
// samples.
#include <arm_neon.h>

namespace headrace::neon {
namespace {

void h2v1(const uint8_t* in, int count, uint8_t* out) {
  const uint8x16_t three = vdupq_n_u8(3);
  for (int i = 0; i < count; i += 16) {
    const uint8x16_t here = vld1q_u8(in + i), before = vld1q_u8(in + i - 1),
                     after = vld1q_u8(in + i + 1);
    const uint16x8_t low = vmull_u8(vget_low_u8(here), vget_low_u8(three));
    const uint16x8_t high = vmull_high_u8(here, three);
    const uint16x8_t one = vdupq_n_u16(1);
    const uint8x8_t even = vshrn_n_u16(vaddw_u8(vaddq_u16(low, one), vget_low_u8(before)), 2);
    const uint8x8_t odd = vrshrn_n_u16(vaddw_u8(low, vget_low_u8(after)), 2);
    vst2q_u8(out + 2 * i, {{vshrn_high_n_u16(even, vaddw_high_u8(vaddq_u16(high, one), before), 2),
                            vrshrn_high_n_u16(odd, vaddw_high_u8(high, after), 2)}});
  }
}

// 3 * near + far of eight samples.
uint16x8_t column(const uint8_t* near, const uint8_t* far) {
  return vmlal_u8(vmovl_u8(vld1_u8(far)), vld1_u8(near), vdup_n_u8(3));
}

void h2v2(const uint8_t* near, const uint8_t* far, int count, uint8_t* out) {
  const uint16x8_t seven = vdupq_n_u16(7);
  uint16x8_t previous = vdupq_n_u16(static_cast<uint16_t>(3 * near[-1] + far[-1]));
  uint16x8_t low = column(near, far);
  for (int i = 0; i < count; i += 16) {
    const uint16x8_t high = column(near + i + 8, far + i + 8);
    const uint16x8_t next = column(near + i + 16, far + i + 16);
    const auto even = [](uint16x8_t before, uint16x8_t here) {
      return vmlaq_n_u16(vextq_u16(before, here, 7), here, 3);
    };
    const auto odd = [&](uint16x8_t here, uint16x8_t after) {
      return vaddq_u16(vmlaq_n_u16(vextq_u16(here, after, 1), here, 3), seven);
    };
    vst2q_u8(out + 2 * i,
             {{vrshrn_high_n_u16(vrshrn_n_u16(even(previous, low), 4), even(low, high), 4),
               vshrn_high_n_u16(vshrn_n_u16(odd(low, high), 4), odd(high, next), 4)}});
    previous = high;
    low = next;
  }
}

void h1v2(const uint8_t* near, const uint8_t* far, int bias, int count, uint8_t* out) {
  const uint16x8_t round = vdupq_n_u16(static_cast<uint16_t>(bias));
  const uint8x16_t three = vdupq_n_u8(3);
  for (int i = 0; i < count; i += 16) {
    const uint8x16_t a = vld1q_u8(near + i), b = vld1q_u8(far + i);
    const uint16x8_t low =
        vmlal_u8(vaddw_u8(round, vget_low_u8(b)), vget_low_u8(a), vget_low_u8(three));
    const uint16x8_t high = vmlal_high_u8(vaddw_high_u8(round, b), a, three);
    vst1q_u8(out + i, vshrn_high_n_u16(vshrn_n_u16(low, 2), high, 2));
  }
}

}  // namespace
}  // namespace headrace::neon
