// SPDX-License-Identifier: Apache-2.0
// Random numbers with NEON. Twin: the loops of noise_rows.cc.
#include "headrace/kernels/noise_rows_levels.h"

#if defined(__aarch64__)

#include "headrace/kernels/float_lanes_neon.h"

namespace headrace {
namespace {

// Both halves of the products without signs.
struct WideProduct {
  Numbers high, low;
};
inline WideProduct wide_product(Numbers a, Numbers b) {
  const uint32x4_t x = vreinterpretq_u32_s32(a), y = vreinterpretq_u32_s32(b);
  const int32x4_t low = vreinterpretq_s32_u64(vmull_u32(vget_low_u32(x), vget_low_u32(y)));
  const int32x4_t high = vreinterpretq_s32_u64(vmull_high_u32(x, y));
  return {vuzp2q_s32(low, high), vuzp1q_s32(low, high)};
}
inline Numbers load(const uint32_t* from) { return vreinterpretq_s32_u32(vld1q_u32(from)); }
inline Numbers bits_of(Floats v) { return vreinterpretq_s32_f32(v); }
inline Floats with_bits(Numbers v) { return vreinterpretq_f32_s32(v); }
inline Floats root(Floats v) { return vsqrtq_f32(v); }
inline void store(uint32_t* to, Numbers v) { vst1q_u32(to, vreinterpretq_u32_s32(v)); }

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/noise_rows_loops.h"

namespace headrace {

const NoiseKernels* noise_kernels_neon() { return &kKernels; }

}  // namespace headrace

#else

namespace headrace {
const NoiseKernels* noise_kernels_neon() { return nullptr; }
}  // namespace headrace

#endif
