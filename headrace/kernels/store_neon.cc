// SPDX-License-Identifier: Apache-2.0
// Stores with NEON. Scalar reference: the loops of store.cc. Four samples take a conversion and one
// arithmetic operation, or five, while a table would take four loads of a byte and four of its
// value.
#include "headrace/kernels/store_levels.h"

#if defined(__aarch64__)

#include <arm_neon.h>

namespace headrace {
namespace {

uint16x8_t float16_of(float32x4_t low, float32x4_t high) {
  return vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(low), high));
}

uint32x4_t rounded_to_bfloat16(float32x4_t value) {  // in the upper halves
  const uint32x4_t bits = vreinterpretq_u32_f32(value);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  return vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
}
uint16x8_t bfloat16_of(float32x4_t low, float32x4_t high) {
  return vuzp2q_u16(vreinterpretq_u16_u32(rounded_to_bfloat16(low)),
                    vreinterpretq_u16_u32(rounded_to_bfloat16(high)));
}

// kFused: Note [One fused step]; otherwise Note [Division by residual].
template <DType kDType, bool kFused>
int row_as(const StoreTable& table, const uint8_t* in, int count, void* out) {
  const float32x4_t scale = vdupq_n_f32(table.affine.scale), mean = vdupq_n_f32(table.affine.mean);
  const float32x4_t std = vdupq_n_f32(table.affine.std);
  const float32x4_t reciprocal = vdupq_n_f32(table.reciprocal);
  const float32x4_t slope = vdupq_n_f32(table.slope), offset = vdupq_n_f32(table.offset);
  const auto mapped = [&](uint16x4_t words) {
    const float32x4_t x = vcvtq_f32_u32(vmovl_u16(words));
    if constexpr (kFused) return vfmaq_f32(offset, x, slope);
    const float32x4_t d = vsubq_f32(vmulq_f32(x, scale), mean);
    const float32x4_t q = vmulq_f32(d, reciprocal);
    return vfmaq_f32(q, vfmsq_f32(d, q, std), reciprocal);
  };
  int i = 0;
  for (; i + 16 <= count; i += 16) {
    const uint8x16_t bytes = vld1q_u8(in + i);
    const uint16x8_t words[2] = {vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes)};
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const float32x4_t low = mapped(vget_low_u16(words[half]));
      const float32x4_t high = mapped(vget_high_u16(words[half]));
      const int at = i + 8 * half;
      if constexpr (kDType == DType::kFloat32) {
        vst1q_f32(static_cast<float*>(out) + at, low);
        vst1q_f32(static_cast<float*>(out) + at + 4, high);
      } else {
        vst1q_u16(static_cast<uint16_t*>(out) + at,
                  kDType == DType::kFloat16 ? float16_of(low, high) : bfloat16_of(low, high));
      }
    }
  }
  return i;
}

template <DType kDType>
int row_of(const StoreTable& table, const uint8_t* in, int count, void* out) {
  return table.fused ? row_as<kDType, true>(table, in, count, out)
                     : row_as<kDType, false>(table, in, count, out);
}

// NEON has no non-temporal stores worth using, only paired stores with a hint.
int row(const StoreTable& table, const uint8_t* in, int count, void* out, bool) {
  if (!table.arithmetic) return 0;
  if (table.dtype == DType::kFloat32) return row_of<DType::kFloat32>(table, in, count, out);
  if (table.dtype == DType::kFloat16) return row_of<DType::kFloat16>(table, in, count, out);
  return row_of<DType::kBFloat16>(table, in, count, out);
}

int interleave3(int element_bytes, const void* const in[], int count, void* out, bool) {
  const int lanes = 16 / element_bytes;
  int i = 0;
  for (; i + lanes <= count; i += lanes) {
    const ptrdiff_t at = ptrdiff_t{i} * element_bytes;
    uint8x16_t plane[3];
    for (int c = 0; c < 3; ++c) plane[c] = vld1q_u8(static_cast<const uint8_t*>(in[c]) + at);
    uint8_t* const to = static_cast<uint8_t*>(out) + 3 * at;
    if (element_bytes == 1) {
      vst3q_u8(to, {{plane[0], plane[1], plane[2]}});
    } else if (element_bytes == 2) {
      vst3q_u16(reinterpret_cast<uint16_t*>(to),
                {{vreinterpretq_u16_u8(plane[0]), vreinterpretq_u16_u8(plane[1]),
                  vreinterpretq_u16_u8(plane[2])}});
    } else {
      vst3q_u32(reinterpret_cast<uint32_t*>(to),
                {{vreinterpretq_u32_u8(plane[0]), vreinterpretq_u32_u8(plane[1]),
                  vreinterpretq_u32_u8(plane[2])}});
    }
  }
  return i;
}

void fence() {}  // the stores are ordinary ones

constexpr StoreKernels kKernels{row, interleave3, fence};

}  // namespace

const StoreKernels* store_kernels_neon() { return &kKernels; }

}  // namespace headrace

#else

namespace headrace {
const StoreKernels* store_kernels_neon() { return nullptr; }
}  // namespace headrace

#endif
