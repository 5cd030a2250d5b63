// SPDX-License-Identifier: Apache-2.0
// Resampling with NEON. Scalar reference: resample_scalar.cc.
//
// 22-bit weights multiply samples extended to 32 bits: one multiply-add (MLA) for four sums,
// instead of two with 16 bits. Table lookups (TBL) expand the samples of four outputs to 32 bits
// each, so that one tap for these is a lookup, a load of weights and an MLA. Sums wrap modulo 2^32,
// and their true value fits.
#include "headrace/kernels/resample/resample_levels.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include <algorithm>
#include <cstring>

namespace headrace {
namespace {

using Reach = ResampleTables::Reach;
constexpr int kGroup = 4;     // outputs that share a window of samples
constexpr int kLongStep = 8;  // taps per step for long filters
constexpr int32_t kHalf = 1 << 21;

// Two outputs of filter_weight(), with the same operations in the same order.
template <Filter kFilter>
float64x2_t weight_of(float64x2_t x) {
  const float64x2_t one = vdupq_n_f64(1.0), none = vdupq_n_f64(0.0);
  x = vabsq_f64(x);
  const uint64x2_t below_one = vcltq_f64(x, one);
  if constexpr (kFilter == Filter::kBilinear) {
    return vbslq_f64(below_one, vsubq_f64(one, x), none);
  } else {
    const uint64x2_t below_two = vcltq_f64(x, vdupq_n_f64(2.0));
    float64x2_t inner = vsubq_f64(vmulq_n_f64(x, 1.5), vdupq_n_f64(2.5));
    inner = vaddq_f64(vmulq_f64(vmulq_f64(inner, x), x), one);
    float64x2_t outer = vmulq_f64(vsubq_f64(x, vdupq_n_f64(5.0)), x);
    outer = vmulq_f64(vaddq_f64(outer, vdupq_n_f64(8.0)), x);
    outer = vmulq_n_f64(vsubq_f64(outer, vdupq_n_f64(4.0)), -0.5);
    return vbslq_f64(below_one, inner, vbslq_f64(below_two, outer, none));
  }
}

template <Filter kFilter>
void weigh_with(const WeighJob& job) {
  const float64x2_t half = vdupq_n_f64(0.5), none = vdupq_n_f64(0.0);
  for (int i = 0; i < job.padded; i += 2) {
    const float64x2_t center = vld1q_f64(job.centers + i);
    const int64x2_t count = vmovl_s32(vld1_s32(job.count + i));
    int64x2_t at = vmovl_s32(vld1_s32(job.first + i));
    const int longest = std::max(job.count[i], job.count[i + 1]);
    float64x2_t sum = none;
    for (int t = 0; t < longest; ++t) {
      const uint64x2_t used = vcgtq_s64(count, vdupq_n_s64(t));
      const float64x2_t x = vaddq_f64(vsubq_f64(vcvtq_f64_s64(at), center), half);
      const float64x2_t weight =
          vbslq_f64(used, weight_of<kFilter>(vmulq_n_f64(x, job.inverse)), none);
      vst1q_f64(job.scratch + 2 * t, weight);
      sum = vaddq_f64(sum, weight);
      at = vaddq_s64(at, vdupq_n_s64(1));
    }
    const uint64x2_t undivided = vceqq_f64(sum, none);
    for (int t = 0; t < job.taps; ++t) {
      int32x2_t rounded = vdup_n_s32(0);
      if (t < longest) {
        float64x2_t weight = vld1q_f64(job.scratch + 2 * t);
        weight = vbslq_f64(undivided, weight, vdivq_f64(weight, sum));
        const float64x2_t bias = vbslq_f64(vcltq_f64(weight, none), vdupq_n_f64(-0.5), half);
        rounded = vmovn_s64(vcvtq_s64_f64(vaddq_f64(bias, vmulq_n_f64(weight, 1 << 22))));
      }
      vst1_s32(job.weights + size_t(t) * job.padded + i, rounded);
    }
  }
}

void weigh(const WeighJob& job) {
  if (job.filter == Filter::kBilinear) {
    weigh_with<Filter::kBilinear>(job);
  } else if (job.filter == Filter::kBicubic) {
    weigh_with<Filter::kBicubic>(job);
  } else {  // rarely used, and needs sines
    resample_kernels_scalar()->weigh(job);
  }
}

// clip(sum >> 22) of 16 sums.
uint8x16_t clipped(const int32x4_t sums[4]) {
  const uint16x8_t low = vqshrun_high_n_s32(vqshrun_n_s32(sums[0], 16), sums[1], 16);
  const uint16x8_t high = vqshrun_high_n_s32(vqshrun_n_s32(sums[2], 16), sums[3], 16);
  return vqshrn_high_n_u16(vqshrn_n_u16(low, 6), high, 6);
}

// Start of the window of each group, and the width of the widest window.
int place_windows(ResampleTables& t) {
  int widest = 0;
  t.base.resize(t.padded / kGroup);
  for (int group = 0; group < t.padded / kGroup; ++group) {
    const int a = std::min(kGroup * group, t.outputs - 1);
    const int b = std::min(kGroup * group + kGroup - 1, t.outputs - 1);
    const int low = std::min(t.first[a], t.first[b]);
    const int high = std::max(t.first[a] + t.count[a], t.first[b] + t.count[b]);
    t.base[group] = low;
    widest = std::max(widest, high - low);
  }
  return widest;
}

// kLong: `digits` holds the weights of an output together, [output][long_taps].
void make_long_weights(ResampleTables& t) {
  t.long_taps = (t.taps + kLongStep - 1) / kLongStep * kLongStep;
  t.digits.resize(size_t(t.outputs) * t.long_taps * sizeof(int32_t));
  std::memset(t.digits.data(), 0, t.digits.size());
  for (int i = 0; i < t.outputs; ++i) {
    int32_t* const to = reinterpret_cast<int32_t*>(t.digits.data()) + size_t(i) * t.long_taps;
    for (int tap = 0; tap < t.count[i]; ++tap) to[tap] = t.weights[size_t(tap) * t.padded + i];
  }
}

void tabulate(ResampleTables& t) {
  const int widest = place_windows(t);
  t.reach = widest <= 16 ? Reach::kWindow : widest <= 32 ? Reach::kWideWindow : Reach::kLong;
  if (t.reach == Reach::kLong) make_long_weights(t);
}

// A window of 16 samples or of 32; samples past it read as 0 and have zero weight.
template <bool kWide>
int32x4_t look_up(const uint8x16x2_t& window, uint8x16_t index) {
  if constexpr (kWide) return vreinterpretq_s32_u8(vqtbl2q_u8(window, index));
  return vreinterpretq_s32_u8(vqtbl1q_u8(window.val[0], index));
}

template <bool kWide>
void horizontal_windows(const ResampleTables& t, const uint8_t* in, uint8_t* out) {
  // The upper three bytes of each index are outside every window.
  const uint32x4_t low_byte = vdupq_n_u32(0xffffff00), next = vdupq_n_u32(1);
  for (int i = 0; i < t.padded; i += 4 * kGroup) {
    int32x4_t sums[4];
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) {
      const int at = i + kGroup * u, base = t.base[at / kGroup];
      const uint8x16x2_t window{
          {vld1q_u8(in + base), kWide ? vld1q_u8(in + base + 16) : vdupq_n_u8(0)}};
      const int32x4_t from = vsubq_s32(vld1q_s32(t.first.data() + at), vdupq_n_s32(base));
      uint8x16_t index = vreinterpretq_u8_u32(vorrq_u32(vreinterpretq_u32_s32(from), low_byte));
      const int32_t* weights = t.weights.data() + at;
      int32x4_t sum = vdupq_n_s32(kHalf);
      for (int tap = 0; tap < t.taps; ++tap, weights += t.padded) {
        sum = vmlaq_s32(sum, look_up<kWide>(window, index), vld1q_s32(weights));
        index = vaddq_u8(index, vreinterpretq_u8_u32(next));
      }
      sums[u] = sum;
    }
    vst1q_u8(out + i, clipped(sums));
  }
}

void horizontal_long(const ResampleTables& t, const uint8_t* in, uint8_t* out) {
  for (int i = 0; i < t.outputs; ++i) {
    const int32_t* const weights =
        reinterpret_cast<const int32_t*>(t.digits.data()) + size_t(i) * t.long_taps;
    int32x4_t low = vdupq_n_s32(0), high = low;
    for (int tap = 0; tap < t.count[i]; tap += kLongStep) {
      const uint16x8_t x = vmovl_u8(vld1_u8(in + t.first[i] + tap));
      low = vmlaq_s32(low, vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(x))),
                      vld1q_s32(weights + tap));
      high =
          vmlaq_s32(high, vreinterpretq_s32_u32(vmovl_high_u16(x)), vld1q_s32(weights + tap + 4));
    }
    const uint32_t sum =
        static_cast<uint32_t>(vaddvq_s32(vaddq_s32(low, high))) + static_cast<uint32_t>(kHalf);
    out[i] = static_cast<uint8_t>(std::clamp(static_cast<int32_t>(sum) >> 22, 0, 255));
  }
}

void horizontal(const ResampleTables& t, const uint8_t* const in[], int channels, uint8_t* out,
                ptrdiff_t plane) {
  for (int c = 0; c < channels; ++c) {
    if (t.reach == Reach::kWindow) {
      horizontal_windows<false>(t, in[c], out + c * plane);
    } else if (t.reach == Reach::kWideWindow) {
      horizontal_windows<true>(t, in[c], out + c * plane);
    } else {
      horizontal_long(t, in[c], out + c * plane);
    }
  }
}

void vertical(const ResampleTables& t, int output, const uint8_t* const rows[], int bytes,
              uint8_t* out) {
  for (int x = 0; x < bytes; x += 16) {
    int32x4_t sums[4];
    std::fill_n(sums, 4, vdupq_n_s32(kHalf));
    const int32_t* weight = t.weights.data() + output;
    for (int tap = 0; tap < t.count[output]; ++tap, weight += t.padded) {
      const uint8x16_t samples = vld1q_u8(rows[tap] + x);
      const uint16x8_t words[2] = {vmovl_u8(vget_low_u8(samples)), vmovl_high_u8(samples)};
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const uint32x4_t low = vmovl_u16(vget_low_u16(words[half]));
        const uint32x4_t high = vmovl_high_u16(words[half]);
        sums[2 * half] = vmlaq_n_s32(sums[2 * half], vreinterpretq_s32_u32(low), *weight);
        sums[2 * half + 1] = vmlaq_n_s32(sums[2 * half + 1], vreinterpretq_s32_u32(high), *weight);
      }
    }
    vst1q_u8(out + x, clipped(sums));
  }
}

constexpr ResampleKernels kKernels{weigh, tabulate, horizontal, vertical};

}  // namespace

const ResampleKernels* resample_kernels_neon() { return &kKernels; }

}  // namespace headrace

#else

namespace headrace {
const ResampleKernels* resample_kernels_neon() { return nullptr; }
}  // namespace headrace

#endif
