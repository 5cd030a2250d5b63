// SPDX-License-Identifier: Apache-2.0
// NEON: 4 numbers of a row of bytes at a time, as 32 bits, in the words of float_lanes_avx2.h.
// Included by each file of this level, so that each compiles functions of its own. Internal to
// kernels/.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

namespace headrace {
namespace {

using Floats = float32x4_t;
using Numbers = int32x4_t;
constexpr int kLanes = 4;

inline Numbers load(const int32_t* from) { return vld1q_s32(from); }
inline void store(int32_t* to, Numbers v) { vst1q_s32(to, v); }
inline Numbers numbers_at(const uint8_t* from) {
  uint32_t four;
  std::memcpy(&four, from, sizeof four);
  const uint16x8_t words = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
  return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(words)));
}
inline Floats floats_of(Numbers v) { return vcvtq_f32_s32(v); }
inline Floats floats_at(const uint8_t* from) { return floats_of(numbers_at(from)); }
inline Floats load(const float* from) { return vld1q_f32(from); }
inline void store(float* to, Floats v) { vst1q_f32(to, v); }

inline Floats all(float v) { return vdupq_n_f32(v); }
inline Numbers all(int v) { return vdupq_n_s32(v); }
inline Numbers lane_numbers() { return Numbers{0, 1, 2, 3}; }
inline Numbers sum(Numbers a, Numbers b) { return vaddq_s32(a, b); }
inline Numbers difference(Numbers a, Numbers b) { return vsubq_s32(a, b); }
inline Numbers product(Numbers a, Numbers b) { return vmulq_s32(a, b); }
inline Numbers most_of(Numbers a, Numbers b) { return vmaxq_s32(a, b); }
inline Numbers least_of(Numbers a, Numbers b) { return vminq_s32(a, b); }
inline Numbers common(Numbers a, Numbers b) { return vandq_s32(a, b); }
inline Numbers joined(Numbers a, Numbers b) { return vorrq_s32(a, b); }
inline Numbers differing(Numbers a, Numbers b) { return veorq_s32(a, b); }
template <int bits>
Numbers shifted_down(Numbers v) {
  return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(v), bits));
}
template <int bits>
Numbers shifted_down_signed(Numbers v) {
  return vshrq_n_s32(v, bits);
}
inline Numbers to_bytes(Numbers v) { return most_of(least_of(v, all(255)), all(0)); }
inline Numbers looked_up(const int32_t* table, Numbers at) {
  return Numbers{table[at[0]], table[at[1]], table[at[2]], table[at[3]]};
}

inline Floats sum(Floats a, Floats b) { return vaddq_f32(a, b); }
inline Floats difference(Floats a, Floats b) { return vsubq_f32(a, b); }
inline Floats product(Floats a, Floats b) { return vmulq_f32(a, b); }
inline Floats quotient(Floats a, Floats b) { return vdivq_f32(a, b); }
// a * b + c, rounded once
inline Floats fused(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }
// The second where one is NaN, which FMIN and FMAX would not give.
inline Floats least_of(Floats a, Floats b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
inline Floats most_of(Floats a, Floats b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
inline Floats floor_of(Floats v) { return vrndmq_f32(v); }
inline Numbers cut_off(Floats v) { return vcvtq_s32_f32(v); }

// Which lanes: all bits of each.
using Mask = uint32x4_t;
inline Mask equal(Numbers a, Numbers b) { return vceqq_s32(a, b); }
inline Mask below(Numbers a, Numbers b) { return vcltq_s32(a, b); }
inline Mask above(Floats a, Floats b) { return vcgtq_f32(a, b); }
inline Mask at_least(Floats a, Floats b) { return vcgeq_f32(a, b); }
inline Mask both(Mask a, Mask b) { return vandq_u32(a, b); }
inline Numbers chosen(Mask where, Numbers a, Numbers otherwise) {
  return vbslq_s32(where, a, otherwise);
}
inline Floats chosen(Mask where, Floats a, Floats otherwise) {
  return vbslq_f32(where, a, otherwise);
}

// Below 0 and above 255 they are cut to these: narrowing saturates.
inline void store_bytes(uint8_t* to, Numbers v) {
  const uint16x4_t words = vqmovun_s32(v);
  const uint8x8_t bytes = vqmovn_u16(vcombine_u16(words, words));
  const uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
  std::memcpy(to, &four, sizeof four);
}
// Four in a row, clamped to 0 to 255 by what narrows them.
inline void store_clamped(uint8_t* to, const Numbers (&v)[4]) {
  const uint16x8_t low = vqmovun_high_s32(vqmovun_s32(v[0]), v[1]);
  const uint16x8_t high = vqmovun_high_s32(vqmovun_s32(v[2]), v[3]);
  vst1q_u8(to, vqmovn_high_u16(vqmovn_u16(low), high));
}
// Clamped to 0 to 255, then cut off.
inline void store_cut_off(uint8_t* to, Floats v) { store_bytes(to, vcvtq_s32_f32(v)); }
// Rounded to the nearest, then clamped.
inline void store_rounded(uint8_t* to, Floats v) { store_bytes(to, vcvtnq_s32_f32(v)); }

}  // namespace
}  // namespace headrace
