// SPDX-License-Identifier: Apache-2.0
// Planar color with NEON. The scalar reference and the other SIMD levels are in planar_color.cc.
// Eight pixels of YCbCr take 19 instructions between loads and stores; libjpeg-turbo, which
// computes green in 32 bits, takes as many.
#include <arm_neon.h>

namespace headrace::neon {
namespace {

struct Rgb {
  uint8x8_t red, green, blue;
};

// Note [YCbCr in 16 bits]
Rgb rgb_of(uint8x8_t luma, uint8x8_t cb, uint8x8_t cr) {
  const uint8x8_t center = vdup_n_u8(128);
  const int16x8_t u = vreinterpretq_s16_u16(vsubl_u8(cb, center));
  const int16x8_t v = vreinterpretq_s16_u16(vsubl_u8(cr, center));
  const auto with_luma = [&](int16x8_t offset) {
    return vqmovun_s16(vreinterpretq_s16_u16(vaddw_u8(vreinterpretq_u16_s16(offset), luma)));
  };
  const int16x8_t low =
      vmlsq_n_s16(vmlsq_n_s16(vdupq_n_s16(kGreenRound), u, kGreenLowCb), v, kGreenLowCr);
  const int16x8_t high = vmlaq_n_s16(vmulq_n_s16(u, kGreenHighCb), v, kGreenHighCr);
  return {with_luma(vqrdmulhq_n_s16(vaddq_s16(v, v), kRedFactor)),
          with_luma(vshrq_n_s16(vsubq_s16(vshrq_n_s16(low, 8), high), 7)),
          with_luma(vqrdmulhq_n_s16(vmulq_n_s16(u, 3), kBlueFactor))};
}

void rgb_from_ycc(const uint8_t* const ycc[3], int count, uint8_t* const rgb[3]) {
  for (int i = 0; i < count; i += 16) {
    const uint8x16_t y = vld1q_u8(ycc[0] + i), u = vld1q_u8(ycc[1] + i), v = vld1q_u8(ycc[2] + i);
    const Rgb low = rgb_of(vget_low_u8(y), vget_low_u8(u), vget_low_u8(v));
    const Rgb high = rgb_of(vget_high_u8(y), vget_high_u8(u), vget_high_u8(v));
    vst1q_u8(rgb[0] + i, vcombine_u8(low.red, high.red));
    vst1q_u8(rgb[1] + i, vcombine_u8(low.green, high.green));
    vst1q_u8(rgb[2] + i, vcombine_u8(low.blue, high.blue));
  }
}

uint16x4_t gray_of(uint16x4_t r, uint16x4_t g, uint16x4_t b) {
  uint32x4_t sum = vmull_n_u16(r, kGrayRed);
  sum = vmlal_n_u16(sum, g, 2 * kGrayHalfGreen);
  sum = vmlal_n_u16(sum, b, kGrayBlue);
  return vrshrn_n_u32(sum, 16);
}

void gray_from_rgb(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  for (int i = 0; i < count; i += 8) {
    uint16x8_t plane[3];
    for (int c = 0; c < 3; ++c) plane[c] = vmovl_u8(vld1_u8(rgb[c] + i));
    const uint16x4_t low =
        gray_of(vget_low_u16(plane[0]), vget_low_u16(plane[1]), vget_low_u16(plane[2]));
    const uint16x4_t high =
        gray_of(vget_high_u16(plane[0]), vget_high_u16(plane[1]), vget_high_u16(plane[2]));
    vst1_u8(gray + i, vmovn_u16(vcombine_u16(low, high)));
  }
}

}  // namespace
}  // namespace headrace::neon
