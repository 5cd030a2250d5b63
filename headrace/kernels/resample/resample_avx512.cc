// SPDX-License-Identifier: Apache-2.0
// Resampling with AVX-512 VBMI and VNNI. Scalar reference: resample_scalar.cc.
//
// A 22-bit weight w is written as three signed base-256 digits, w = d2*65536 + d1*256 + d0 with
// each digit in [-128, 127], so that VPDPBUSD can multiply bytes by it, four taps at a time. All
// sums wrap modulo 2^32 and their true value fits, so the recombined sum is exact.
// (Weights stay below 1.99 * 2^22 in magnitude, which three digits can hold; resample_test.cc.)
#include "headrace/kernels/resample/resample_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni,bmi2");

namespace headrace {
namespace {

using Reach = ResampleTables::Reach;
constexpr int kDigits = 3;

// Eight outputs of filter_weight(), with the same operations in the same order.
template <Filter kFilter>
__m512d weight_of(__m512d x) {
  const __m512d one = _mm512_set1_pd(1.0);
  x = _mm512_abs_pd(x);
  const __mmask8 below_one = _mm512_cmp_pd_mask(x, one, _CMP_LT_OQ);
  if constexpr (kFilter == Filter::kBilinear) {
    return _mm512_maskz_sub_pd(below_one, one, x);
  } else {
    const __mmask8 below_two = _mm512_cmp_pd_mask(x, _mm512_set1_pd(2.0), _CMP_LT_OQ);
    __m512d inner = _mm512_sub_pd(_mm512_mul_pd(_mm512_set1_pd(1.5), x), _mm512_set1_pd(2.5));
    inner = _mm512_add_pd(_mm512_mul_pd(_mm512_mul_pd(inner, x), x), one);
    __m512d outer = _mm512_mul_pd(_mm512_sub_pd(x, _mm512_set1_pd(5.0)), x);
    outer = _mm512_mul_pd(_mm512_add_pd(outer, _mm512_set1_pd(8.0)), x);
    outer = _mm512_mul_pd(_mm512_sub_pd(outer, _mm512_set1_pd(4.0)), _mm512_set1_pd(-0.5));
    return _mm512_mask_mov_pd(_mm512_maskz_mov_pd(below_two, outer), below_one, inner);
  }
}

template <Filter kFilter>
void weigh_with(const WeighJob& job) {
  const __m512d half = _mm512_set1_pd(0.5), inverse = _mm512_set1_pd(job.inverse);
  const __m512d zero = _mm512_setzero_pd(), fixed = _mm512_set1_pd(1 << 22);
  for (int i = 0; i < job.padded; i += 8) {
    const __m512d center = _mm512_loadu_pd(job.centers + i);
    const __m256i count = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(job.count + i));
    __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(job.first + i));
    const int longest = *std::max_element(job.count + i, job.count + i + 8);
    __m512d sum = zero;
    for (int t = 0; t < longest; ++t) {
      const __mmask8 used = _mm256_cmpgt_epi32_mask(count, _mm256_set1_epi32(t));
      const __m512d x = _mm512_add_pd(_mm512_sub_pd(_mm512_cvtepi32_pd(at), center), half);
      const __m512d weight =
          _mm512_maskz_mov_pd(used, weight_of<kFilter>(_mm512_mul_pd(x, inverse)));
      _mm512_storeu_pd(job.scratch + 8 * t, weight);
      sum = _mm512_add_pd(sum, weight);
      at = _mm256_add_epi32(at, _mm256_set1_epi32(1));
    }
    const __mmask8 divide = _mm512_cmp_pd_mask(sum, zero, _CMP_NEQ_UQ);
    for (int t = 0; t < job.taps; ++t) {
      __m256i rounded = _mm256_setzero_si256();
      if (t < longest) {
        __m512d weight = _mm512_loadu_pd(job.scratch + 8 * t);
        weight = _mm512_mask_div_pd(weight, divide, weight, sum);
        const __mmask8 negative = _mm512_cmp_pd_mask(weight, zero, _CMP_LT_OQ);
        const __m512d bias = _mm512_mask_sub_pd(half, negative, zero, half);
        rounded = _mm512_cvttpd_epi32(_mm512_add_pd(bias, _mm512_mul_pd(weight, fixed)));
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(job.weights + size_t(t) * job.padded + i),
                          rounded);
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

// Digits: [digit][group][tap / 4][lane] dwords, each with that digit of four taps of one output.
const uint8_t* digits_of(const ResampleTables& t, int digit) {
  return t.digits.data() + size_t(digit) * t.padded * t.taps;
}

void make_digits(ResampleTables& t) {
  const int quads = t.taps / 4;
  t.digits.resize(size_t(kDigits) * t.padded * t.taps);
  // Adding and clearing the bias turns the low bytes into balanced digits with their carries.
  const __m512i bias = _mm512_set1_epi32(0x808080), low_byte = _mm512_set1_epi32(0xff);
  for (int group = 0; group < t.padded / 16; ++group) {
    for (int quad = 0; quad < quads; ++quad) {
      __m512i balanced[4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const __m512i weights =
            _mm512_loadu_si512(t.weights.data() + size_t(4 * quad + j) * t.padded + 16 * group);
        balanced[j] = _mm512_xor_si512(_mm512_add_epi32(weights, bias), bias);
      }
#pragma GCC unroll 4
      for (int digit = 0; digit < kDigits; ++digit) {
        __m512i packed = _mm512_setzero_si512();
#pragma GCC unroll 4
        for (int j = 3; j >= 0; --j) {
          packed = _mm512_or_si512(
              _mm512_slli_epi32(packed, 8),
              _mm512_and_si512(_mm512_srli_epi32(balanced[j], 8 * digit), low_byte));
        }
        uint8_t* const to = t.digits.data() + size_t(digit) * t.padded * t.taps;
        _mm512_store_si512(to + size_t(group * quads + quad) * 64, packed);
      }
    }
  }
}

// Start of the window of each group of 16 outputs, and the width of the widest window.
int place_windows(ResampleTables& t) {
  int widest = 0;
  t.base.resize(t.padded / 16);
  for (int group = 0; group < t.padded / 16; ++group) {
    const int a = 16 * group, b = std::min(a + 15, t.outputs - 1);
    const int low = std::min(t.first[a], t.first[b]);
    const int high = std::max(t.first[a] + t.count[a], t.first[b] + t.count[b]);
    t.base[group] = low;
    widest = std::max(widest, high - low);
  }
  return widest;
}

void make_indices(ResampleTables& t) {
  const int quads = t.taps / 4;
  t.indices.resize(size_t(t.padded) * t.taps);
  for (int group = 0; group < t.padded / 16; ++group) {
    // A window of two vectors must not reach further past the row than one vector does.
    if (t.reach == Reach::kWideWindow) {
      t.base[group] = std::min(t.base[group], std::max(0, t.samples - 64));
    }
    __m512i at = _mm512_sub_epi32(_mm512_loadu_si512(t.first.data() + 16 * group),
                                  _mm512_set1_epi32(t.base[group]));
    at = _mm512_mullo_epi32(at, _mm512_set1_epi32(0x01010101));
    at = _mm512_add_epi32(at, _mm512_set1_epi32(0x03020100));
    for (int quad = 0; quad < quads; ++quad) {
      // Taps past an output's count may wrap around; their weights are zero.
      _mm512_store_si512(t.indices.data() + size_t(group * quads + quad) * 64, at);
      at = _mm512_add_epi8(at, _mm512_set1_epi8(4));
    }
  }
}

// kLong: `indices` holds digits together, [output][digit][long_taps].
void make_long_digits(ResampleTables& t) {
  t.long_taps = (t.taps + 63) / 64 * 64;
  t.indices.resize(size_t(t.outputs) * kDigits * t.long_taps);
  std::memset(t.indices.data(), 0, t.indices.size());
  for (int i = 0; i < t.outputs; ++i) {
    uint8_t* const to = t.indices.data() + size_t(i) * kDigits * t.long_taps;
    for (int tap = 0; tap < t.count[i]; ++tap) {
      const uint32_t weight = t.weights[size_t(tap) * t.padded + i];
      const uint32_t balanced = (weight + 0x808080) ^ 0x808080;
#pragma GCC unroll 4
      for (int digit = 0; digit < kDigits; ++digit) {
        to[digit * t.long_taps + tap] = static_cast<uint8_t>(balanced >> (8 * digit));
      }
    }
  }
}

void tabulate(ResampleTables& t) {
  make_digits(t);
  const int widest = place_windows(t);
  t.reach = widest <= 32 && t.taps == 4 ? Reach::kHalfWindow
            : widest <= 64              ? Reach::kWindow
            : widest <= 128             ? Reach::kWideWindow
                                        : Reach::kLong;
  if (t.reach == Reach::kLong) {
    make_long_digits(t);
  } else {
    make_indices(t);
  }
}

__m512i recombine(__m512i s0, __m512i s1, __m512i s2) {
  s1 = _mm512_add_epi32(_mm512_slli_epi32(s2, 8), s1);
  return _mm512_add_epi32(_mm512_slli_epi32(s1, 8), s0);
}

template <int kChannels, bool kWide>
void horizontal_windows(const ResampleTables& t, const uint8_t* const in[], uint8_t* out,
                        ptrdiff_t plane) {
  const __m512i half = _mm512_set1_epi32(1 << 21), zero = _mm512_setzero_si512();
  const int quads = t.taps / 4;
  const uint8_t* index = t.indices.data();
  const uint8_t* d0 = digits_of(t, 0);
  const uint8_t* d1 = digits_of(t, 1);
  const uint8_t* d2 = digits_of(t, 2);
  for (int group = 0; group < t.padded / 16; ++group) {
    __m512i s0[kChannels], s1[kChannels], s2[kChannels];
    __m512i near[kChannels], far[kChannels];
#pragma GCC unroll 4
    for (int c = 0; c < kChannels; ++c) {
      s0[c] = half;
      s1[c] = s2[c] = zero;
      const uint8_t* const window = in[c] + t.base[group];
      near[c] = _mm512_loadu_si512(window);
      far[c] = kWide ? _mm512_loadu_si512(window + 64) : zero;
    }
    for (int quad = 0; quad < quads; ++quad, index += 64, d0 += 64, d1 += 64, d2 += 64) {
      const __m512i at = _mm512_load_si512(index);
      const __m512i w0 = _mm512_load_si512(d0), w1 = _mm512_load_si512(d1);
      const __m512i w2 = _mm512_load_si512(d2);
#pragma GCC unroll 4
      for (int c = 0; c < kChannels; ++c) {
        const __m512i x = kWide ? _mm512_permutex2var_epi8(near[c], at, far[c])
                                : _mm512_permutexvar_epi8(at, near[c]);
        s0[c] = _mm512_dpbusd_epi32(s0[c], x, w0);
        s1[c] = _mm512_dpbusd_epi32(s1[c], x, w1);
        s2[c] = _mm512_dpbusd_epi32(s2[c], x, w2);
      }
    }
#pragma GCC unroll 4
    for (int c = 0; c < kChannels; ++c) {
      const __m512i sum = _mm512_srai_epi32(recombine(s0[c], s1[c], s2[c]), 22);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + c * plane + 16 * group),
                       _mm512_cvtusepi32_epi8(_mm512_max_epi32(sum, zero)));
    }
  }
}

// A sum of up to four taps: each digit's products are added to the shifted sum of the higher
// digits. 32 becomes one half after two shifts.
[[gnu::always_inline]] inline __m512i sum_of_four(__m512i x, __m512i w0, __m512i w1, __m512i w2) {
  const __m512i s2 = _mm512_dpbusd_epi32(_mm512_set1_epi32(32), x, w2);
  const __m512i s1 = _mm512_dpbusd_epi32(_mm512_slli_epi32(s2, 8), x, w1);
  return _mm512_dpbusd_epi32(_mm512_slli_epi32(s1, 8), x, w0);
}

// Only half as many of the shorter windows cross a cache line.
template <int kChannels>
void horizontal_four(const ResampleTables& t, const uint8_t* const in[], uint8_t* out,
                     ptrdiff_t plane) {
  const __m512i zero = _mm512_setzero_si512();
  for (int group = 0; group < t.padded / 16; ++group) {
    const __m512i at = _mm512_load_si512(t.indices.data() + 64 * group);
    const __m512i w0 = _mm512_load_si512(digits_of(t, 0) + 64 * group);
    const __m512i w1 = _mm512_load_si512(digits_of(t, 1) + 64 * group);
    const __m512i w2 = _mm512_load_si512(digits_of(t, 2) + 64 * group);
#pragma GCC unroll 4
    for (int c = 0; c < kChannels; ++c) {
      const uint8_t* const window = in[c] + t.base[group];
      // Taps past an output's count may be out of range; their weights are zero.
      const __m512i near =
          _mm512_zextsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(window)));
      const __m512i sum = sum_of_four(_mm512_permutexvar_epi8(at, near), w0, w1, w2);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + c * plane + 16 * group),
                       _mm512_cvtusepi32_epi8(_mm512_max_epi32(_mm512_srai_epi32(sum, 22), zero)));
    }
  }
}

template <int kChannels>
void horizontal_long(const ResampleTables& t, const uint8_t* const in[], uint8_t* out,
                     ptrdiff_t plane) {
  for (int i = 0; i < t.outputs; ++i) {
    const uint8_t* const digits = t.indices.data() + size_t(i) * kDigits * t.long_taps;
    __m512i s0[kChannels], s1[kChannels], s2[kChannels];
#pragma GCC unroll 4
    for (int c = 0; c < kChannels; ++c) s0[c] = s1[c] = s2[c] = _mm512_setzero_si512();
    for (int tap = 0; tap < t.count[i]; tap += 64) {
      const __m512i w0 = _mm512_load_si512(digits + tap);
      const __m512i w1 = _mm512_load_si512(digits + t.long_taps + tap);
      const __m512i w2 = _mm512_load_si512(digits + 2 * t.long_taps + tap);
#pragma GCC unroll 4
      for (int c = 0; c < kChannels; ++c) {
        const __m512i x = _mm512_loadu_si512(in[c] + t.first[i] + tap);
        s0[c] = _mm512_dpbusd_epi32(s0[c], x, w0);
        s1[c] = _mm512_dpbusd_epi32(s1[c], x, w1);
        s2[c] = _mm512_dpbusd_epi32(s2[c], x, w2);
      }
    }
#pragma GCC unroll 4
    for (int c = 0; c < kChannels; ++c) {
      const uint32_t sum =
          (1u << 21) +
          static_cast<uint32_t>(_mm512_reduce_add_epi32(recombine(s0[c], s1[c], s2[c])));
      out[c * plane + i] =
          static_cast<uint8_t>(std::clamp(static_cast<int32_t>(sum) >> 22, 0, 255));
    }
  }
}

template <int kChannels>
void horizontal_of(const ResampleTables& t, const uint8_t* const in[], uint8_t* out,
                   ptrdiff_t plane) {
  switch (t.reach) {
    case Reach::kHalfWindow:
      return horizontal_four<kChannels>(t, in, out, plane);
    case Reach::kWindow:
      return horizontal_windows<kChannels, false>(t, in, out, plane);
    case Reach::kWideWindow:
      return horizontal_windows<kChannels, true>(t, in, out, plane);
    default:
      return horizontal_long<kChannels>(t, in, out, plane);
  }
}

void horizontal(const ResampleTables& t, const uint8_t* const in[], int channels, uint8_t* out,
                ptrdiff_t plane) {
  switch (channels) {
    case 1:
      return horizontal_of<1>(t, in, out, plane);
    case 2:
      return horizontal_of<2>(t, in, out, plane);
    case 3:
      return horizontal_of<3>(t, in, out, plane);
    default:
      return horizontal_of<4>(t, in, out, plane);
  }
}

// Four rows -> their bytes interleaved, in the order that packed_sums() undoes.
[[gnu::always_inline]] inline void interleave_rows(const uint8_t* const rows[], int x,
                                                   __m512i taps[4]) {
  const __m512i a = _mm512_loadu_si512(rows[0] + x), b = _mm512_loadu_si512(rows[1] + x);
  const __m512i c = _mm512_loadu_si512(rows[2] + x), d = _mm512_loadu_si512(rows[3] + x);
  const __m512i ab0 = _mm512_unpacklo_epi8(a, b), ab1 = _mm512_unpackhi_epi8(a, b);
  const __m512i cd0 = _mm512_unpacklo_epi8(c, d), cd1 = _mm512_unpackhi_epi8(c, d);
  taps[0] = _mm512_unpacklo_epi16(ab0, cd0);
  taps[1] = _mm512_unpackhi_epi16(ab0, cd0);
  taps[2] = _mm512_unpacklo_epi16(ab1, cd1);
  taps[3] = _mm512_unpackhi_epi16(ab1, cd1);
}

[[gnu::always_inline]] inline __m512i packed_sums(const __m512i sum[4]) {
  __m512i value[4];
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) value[q] = _mm512_srai_epi32(sum[q], 22);
  return _mm512_packus_epi16(_mm512_packs_epi32(value[0], value[1]),
                             _mm512_packs_epi32(value[2], value[3]));
}

__m512i four_digits(const uint8_t* digits) {
  int32_t four;
  std::memcpy(&four, digits, 4);
  return _mm512_set1_epi32(four);
}

void vertical(const ResampleTables& t, int output, const uint8_t* const rows[], int bytes,
              uint8_t* out) {
  const __m512i half = _mm512_set1_epi32(1 << 21), zero = _mm512_setzero_si512();
  const int used = (t.count[output] + 3) / 4, stride = 64;
  const size_t at = (size_t(output / 16) * (t.taps / 4) * 16 + output % 16) * 4;
  const uint8_t* const d0 = digits_of(t, 0) + at;
  const uint8_t* const d1 = digits_of(t, 1) + at;
  const uint8_t* const d2 = digits_of(t, 2) + at;
  __m512i taps[4], sum[4];
  if (used == 1) {
    const uint8_t* const four[4] = {rows[0], rows[1], rows[2], rows[3]};
    const __m512i w0 = four_digits(d0), w1 = four_digits(d1), w2 = four_digits(d2);
    for (int x = 0; x < bytes; x += 64) {
      interleave_rows(four, x, taps);
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) sum[q] = sum_of_four(taps[q], w0, w1, w2);
      _mm512_storeu_si512(out + x, packed_sums(sum));
    }
    return;
  }
  for (int x = 0; x < bytes; x += 64) {
    __m512i s0[4], s1[4], s2[4];
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      s0[q] = half;
      s1[q] = s2[q] = zero;
    }
    for (int quad = 0; quad < used; ++quad) {
      interleave_rows(rows + 4 * quad, x, taps);
      const __m512i w0 = four_digits(d0 + stride * quad), w1 = four_digits(d1 + stride * quad);
      const __m512i w2 = four_digits(d2 + stride * quad);
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) {
        s0[q] = _mm512_dpbusd_epi32(s0[q], taps[q], w0);
        s1[q] = _mm512_dpbusd_epi32(s1[q], taps[q], w1);
        s2[q] = _mm512_dpbusd_epi32(s2[q], taps[q], w2);
      }
    }
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) sum[q] = recombine(s0[q], s1[q], s2[q]);
    _mm512_storeu_si512(out + x, packed_sums(sum));
  }
}

constexpr ResampleKernels kKernels{weigh, tabulate, horizontal, vertical};

}  // namespace

const ResampleKernels* resample_kernels_avx512() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const ResampleKernels* resample_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
