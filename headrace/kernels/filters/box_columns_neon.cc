// SPDX-License-Identifier: Apache-2.0
// Box filters with NEON. Twin: the loop of box_columns.cc.
#include "headrace/kernels/filters/box_columns_levels.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include <algorithm>
#include <cstdint>

namespace headrace {
namespace {

struct Sixteen {  // numbers of 32 bits
  uint32x4_t of[4];
};

template <class Made>
inline Sixteen sixteen(Made&& made) {
  return {{made(0), made(1), made(2), made(3)}};
}

inline Sixteen numbers_at(const uint8_t* from) {
  const uint8x16_t bytes = vld1q_u8(from);
  const uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_high_u8(bytes);
  return {{vmovl_u16(vget_low_u16(low)), vmovl_high_u16(low), vmovl_u16(vget_low_u16(high)),
           vmovl_high_u16(high)}};
}
inline Sixteen all_numbers(uint32_t v) {
  return sixteen([&](int) { return vdupq_n_u32(v); });
}
inline Sixteen sum(const Sixteen& a, const Sixteen& b) {
  return sixteen([&](int i) { return vaddq_u32(a.of[i], b.of[i]); });
}
inline Sixteen difference(const Sixteen& a, const Sixteen& b) {
  return sixteen([&](int i) { return vsubq_u32(a.of[i], b.of[i]); });
}
inline Sixteen product(const Sixteen& a, uint32_t b) {
  return sixteen([&](int i) { return vmulq_n_u32(a.of[i], b); });
}
inline void store_upper_bytes(uint8_t* to, const Sixteen& v) {
  const uint16x8_t low = vcombine_u16(vshrn_n_u32(v.of[0], 16), vshrn_n_u32(v.of[1], 16));
  const uint16x8_t high = vcombine_u16(vshrn_n_u32(v.of[2], 16), vshrn_n_u32(v.of[3], 16));
  vst1q_u8(to, vcombine_u8(vshrn_n_u16(low, 8), vshrn_n_u16(high, 8)));
}

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/filters/box_columns_loops.h"

namespace headrace {

BoxColumns box_columns_neon() { return filter_box_columns; }

}  // namespace headrace

#else

namespace headrace {
BoxColumns box_columns_neon() { return nullptr; }
}  // namespace headrace

#endif
