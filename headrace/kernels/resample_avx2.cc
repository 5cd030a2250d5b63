// SPDX-License-Identifier: Apache-2.0
// Resampling with AVX2. Twin: resample_scalar.cc.
//
// A 22-bit weight w is split into two words, w = high*2048 + low with 0 <= low < 2048, so that
// VPMADDWD can multiply samples by it, two taps at a time. All sums wrap modulo 2^32 and their true
// value fits, so the recombined sum is exact.
#include "headrace/kernels/resample_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2,bmi2");

namespace headrace {
namespace {

using Reach = ResampleTables::Reach;
constexpr int kLowBits = 11;

__m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
void store(void* to, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }
__m128i load_half(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }

// Four outputs of filter_weight(), the same operations in the same order.
template <Filter kFilter>
__m256d weight_of(__m256d x) {
  const __m256d one = _mm256_set1_pd(1.0);
  x = _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
  const __m256d below_one = _mm256_cmp_pd(x, one, _CMP_LT_OQ);
  if constexpr (kFilter == Filter::kBilinear) {
    return _mm256_and_pd(below_one, _mm256_sub_pd(one, x));
  } else {
    const __m256d below_two = _mm256_cmp_pd(x, _mm256_set1_pd(2.0), _CMP_LT_OQ);
    __m256d inner = _mm256_sub_pd(_mm256_mul_pd(_mm256_set1_pd(1.5), x), _mm256_set1_pd(2.5));
    inner = _mm256_add_pd(_mm256_mul_pd(_mm256_mul_pd(inner, x), x), one);
    __m256d outer = _mm256_mul_pd(_mm256_sub_pd(x, _mm256_set1_pd(5.0)), x);
    outer = _mm256_mul_pd(_mm256_add_pd(outer, _mm256_set1_pd(8.0)), x);
    outer = _mm256_mul_pd(_mm256_sub_pd(outer, _mm256_set1_pd(4.0)), _mm256_set1_pd(-0.5));
    return _mm256_blendv_pd(_mm256_and_pd(below_two, outer), inner, below_one);
  }
}

template <Filter kFilter>
void weigh_with(const WeighJob& job) {
  const __m256d half = _mm256_set1_pd(0.5), inverse = _mm256_set1_pd(job.inverse);
  const __m256d sign = _mm256_set1_pd(-0.0), zero = _mm256_setzero_pd();
  for (int i = 0; i < job.padded; i += 4) {
    const __m256d center = _mm256_loadu_pd(job.centers + i);
    const __m128i count = load_half(job.count + i);
    __m128i at = load_half(job.first + i);
    const int longest = *std::max_element(job.count + i, job.count + i + 4);
    __m256d sum = zero;
    for (int t = 0; t < longest; ++t) {
      const __m256d used =
          _mm256_castsi256_pd(_mm256_cvtepi32_epi64(_mm_cmpgt_epi32(count, _mm_set1_epi32(t))));
      const __m256d x = _mm256_add_pd(_mm256_sub_pd(_mm256_cvtepi32_pd(at), center), half);
      const __m256d weight = _mm256_and_pd(used, weight_of<kFilter>(_mm256_mul_pd(x, inverse)));
      _mm256_storeu_pd(job.scratch + 4 * t, weight);
      sum = _mm256_add_pd(sum, weight);
      at = _mm_add_epi32(at, _mm_set1_epi32(1));
    }
    const __m256d divide = _mm256_cmp_pd(sum, zero, _CMP_NEQ_UQ);
    for (int t = 0; t < job.taps; ++t) {
      __m128i rounded = _mm_setzero_si128();
      if (t < longest) {
        __m256d weight = _mm256_loadu_pd(job.scratch + 4 * t);
        weight = _mm256_blendv_pd(weight, _mm256_div_pd(weight, sum), divide);
        // -0.0 takes the bias -0.5 here and 0.5 in the twin; both round to 0.
        const __m256d bias = _mm256_or_pd(half, _mm256_and_pd(weight, sign));
        rounded = _mm256_cvttpd_epi32(
            _mm256_add_pd(bias, _mm256_mul_pd(weight, _mm256_set1_pd(1 << 22))));
      }
      _mm_storeu_si128(reinterpret_cast<__m128i*>(job.weights + size_t(t) * job.padded + i),
                       rounded);
    }
  }
}

void weigh(const WeighJob& job) {
  if (job.filter == Filter::kBilinear) {
    weigh_with<Filter::kBilinear>(job);
  } else if (job.filter == Filter::kBicubic) {
    weigh_with<Filter::kBicubic>(job);
  } else {  // seldom used, and of sines
    resample_kernels_scalar()->weigh(job);
  }
}

// Digits: [high, low][tap / 2][padded] dwords, each the words of two taps of one output.
const int32_t* pairs_of(const ResampleTables& t, int part) {
  return reinterpret_cast<const int32_t*>(t.digits.data()) + size_t(part) * t.padded * (t.taps / 2);
}

void make_pairs(ResampleTables& t) {
  const size_t part = size_t(t.padded) * (t.taps / 2);
  t.digits.resize(2 * part * sizeof(int32_t));
  int32_t* high = reinterpret_cast<int32_t*>(t.digits.data());
  int32_t* low = high + part;
  const __m256i low_word = _mm256_set1_epi32(0xffff), low_bits = _mm256_set1_epi32(2047);
  for (int pair = 0; pair < t.taps / 2; ++pair) {
    const int32_t* const even = t.weights.data() + size_t(2 * pair) * t.padded;
    const int32_t* const odd = even + t.padded;
    for (int i = 0; i < t.padded; i += 8, high += 8, low += 8) {
      const __m256i a = load(even + i), b = load(odd + i);
      store(high, _mm256_or_si256(_mm256_and_si256(_mm256_srai_epi32(a, kLowBits), low_word),
                                  _mm256_slli_epi32(_mm256_srai_epi32(b, kLowBits), 16)));
      store(low, _mm256_or_si256(_mm256_and_si256(a, low_bits),
                                 _mm256_slli_epi32(_mm256_and_si256(b, low_bits), 16)));
    }
  }
}

// Where the window of each group of 4 outputs begins, and the widest of them.
int place_windows(ResampleTables& t) {
  int widest = 0;
  t.base.resize(t.padded / 4);
  for (int group = 0; group < t.padded / 4; ++group) {
    const int a = std::min(4 * group, t.outputs - 1), b = std::min(4 * group + 3, t.outputs - 1);
    const int low = std::min(t.first[a], t.first[b]);
    const int high = std::max(t.first[a] + t.count[a], t.first[b] + t.count[b]);
    t.base[group] = low;
    widest = std::max(widest, high - low);
  }
  return widest;
}

// Shuffles: [group of 4][tap / 4] of 16 bytes: taps 0 and 1 of the four outputs, then 2 and 3.
void make_indices(ResampleTables& t) {
  const int quads = t.taps / 4;
  t.indices.resize(size_t(t.padded) * t.taps);
  uint8_t* to = t.indices.data();
  for (int group = 0; group < t.padded / 4; ++group) {
    for (int quad = 0; quad < quads; ++quad, to += 16) {
      for (int o = 0; o < 4; ++o) {
        const int from = t.first[4 * group + o] - t.base[group] + 4 * quad;
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
          to[(j >> 1) * 8 + 2 * o + (j & 1)] =
              static_cast<uint8_t>(from + j > 15 ? 0x80 : from + j);
        }
      }
    }
  }
}

// kLong: `indices` holds words side by side, [output][high, low][long_taps].
void make_long_words(ResampleTables& t) {
  t.long_taps = (t.taps + 15) / 16 * 16;
  t.indices.resize(size_t(t.outputs) * 2 * t.long_taps * sizeof(int16_t));
  std::memset(t.indices.data(), 0, t.indices.size());
  for (int i = 0; i < t.outputs; ++i) {
    int16_t* const to = reinterpret_cast<int16_t*>(t.indices.data()) + size_t(i) * 2 * t.long_taps;
    for (int tap = 0; tap < t.count[i]; ++tap) {
      const int32_t weight = t.weights[size_t(tap) * t.padded + i];
      to[tap] = static_cast<int16_t>(weight >> kLowBits);
      to[t.long_taps + tap] = static_cast<int16_t>(weight & 2047);
    }
  }
}

void tabulate(ResampleTables& t) {
  make_pairs(t);
  t.reach = place_windows(t) <= 16 ? Reach::kWindow : Reach::kLong;
  if (t.reach == Reach::kLong) {
    make_long_words(t);
  } else {
    make_indices(t);
  }
}

__m256i recombine(__m256i high, __m256i low) {
  return _mm256_srai_epi32(_mm256_add_epi32(_mm256_slli_epi32(high, kLowBits), low), 22);
}

// kQuads: taps / 4, or 0 for any number.
template <int kQuads>
void horizontal_windows(const ResampleTables& t, const uint8_t* in, uint8_t* out) {
  const __m256i half = _mm256_set1_epi32(1 << 21), zero = _mm256_setzero_si256();
  const int quads = kQuads ? kQuads : t.taps / 4;
  const int32_t* const high_pairs = pairs_of(t, 0);
  const int32_t* const low_pairs = pairs_of(t, 1);
  for (int i = 0; i < t.padded; i += 16) {
    __m256i sums[2];
#pragma GCC unroll 4
    for (int u = 0; u < 2; ++u) {
      const int group = i / 4 + 2 * u;
      const __m256i window =
          _mm256_inserti128_si256(_mm256_castsi128_si256(load_half(in + t.base[group])),
                                  load_half(in + t.base[group + 1]), 1);
      const uint8_t* const shuffle = t.indices.data() + size_t(group) * quads * 16;
      __m256i high = zero, low = half;
      for (int quad = 0; quad < quads; ++quad) {
        const __m256i index =
            _mm256_inserti128_si256(_mm256_castsi128_si256(load_half(shuffle + 16 * quad)),
                                    load_half(shuffle + 16 * (quads + quad)), 1);
        const __m256i x = _mm256_shuffle_epi8(window, index);
        const __m256i a = _mm256_unpacklo_epi8(x, zero), b = _mm256_unpackhi_epi8(x, zero);
        const size_t at = size_t(2 * quad) * t.padded + i + 8 * u, next = at + t.padded;
        high =
            _mm256_add_epi32(high, _mm256_add_epi32(_mm256_madd_epi16(a, load(high_pairs + at)),
                                                    _mm256_madd_epi16(b, load(high_pairs + next))));
        low = _mm256_add_epi32(low, _mm256_add_epi32(_mm256_madd_epi16(a, load(low_pairs + at)),
                                                     _mm256_madd_epi16(b, load(low_pairs + next))));
      }
      sums[u] = recombine(high, low);
    }
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(sums[0], sums[1]), 0xd8);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(out + i),
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
}

uint32_t sum_of(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(s));
}

void horizontal_long(const ResampleTables& t, const uint8_t* in, uint8_t* out) {
  for (int i = 0; i < t.outputs; ++i) {
    const int16_t* const words =
        reinterpret_cast<const int16_t*>(t.indices.data()) + size_t(i) * 2 * t.long_taps;
    __m256i high = _mm256_setzero_si256(), low = high;
    for (int tap = 0; tap < t.count[i]; tap += 16) {
      const __m256i x = _mm256_cvtepu8_epi16(load_half(in + t.first[i] + tap));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(x, load(words + tap)));
      low = _mm256_add_epi32(low, _mm256_madd_epi16(x, load(words + t.long_taps + tap)));
    }
    const uint32_t sum = (1u << 21) + (sum_of(high) << kLowBits) + sum_of(low);
    out[i] = static_cast<uint8_t>(std::clamp(static_cast<int32_t>(sum) >> 22, 0, 255));
  }
}

void horizontal(const ResampleTables& t, const uint8_t* const in[], int channels, uint8_t* out,
                ptrdiff_t plane) {
  for (int c = 0; c < channels; ++c) {
    if (t.reach == Reach::kWindow && t.taps == 4) {
      horizontal_windows<1>(t, in[c], out + c * plane);
    } else if (t.reach == Reach::kWindow) {
      horizontal_windows<0>(t, in[c], out + c * plane);
    } else {
      horizontal_long(t, in[c], out + c * plane);
    }
  }
}

void vertical(const ResampleTables& t, int output, const uint8_t* const rows[], int bytes,
              uint8_t* out) {
  const __m256i half = _mm256_set1_epi32(1 << 21), zero = _mm256_setzero_si256();
  const int pairs = (t.count[output] + 1) / 2;
  const int32_t* const high_pairs = pairs_of(t, 0) + output;
  const int32_t* const low_pairs = pairs_of(t, 1) + output;
  for (int x = 0; x < bytes; x += 32) {
    __m256i high[4] = {zero, zero, zero, zero}, low[4] = {half, half, half, half};
    for (int pair = 0; pair < pairs; ++pair) {
      const __m256i wh = _mm256_set1_epi32(high_pairs[size_t(pair) * t.padded]);
      const __m256i wl = _mm256_set1_epi32(low_pairs[size_t(pair) * t.padded]);
      const __m256i a = load(rows[2 * pair] + x), b = load(rows[2 * pair + 1] + x);
      const __m256i ab0 = _mm256_unpacklo_epi8(a, b), ab1 = _mm256_unpackhi_epi8(a, b);
      const __m256i taps[4] = {_mm256_unpacklo_epi8(ab0, zero), _mm256_unpackhi_epi8(ab0, zero),
                               _mm256_unpacklo_epi8(ab1, zero), _mm256_unpackhi_epi8(ab1, zero)};
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) {
        high[q] = _mm256_add_epi32(high[q], _mm256_madd_epi16(taps[q], wh));
        low[q] = _mm256_add_epi32(low[q], _mm256_madd_epi16(taps[q], wl));
      }
    }
    __m256i sum[4];
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) sum[q] = recombine(high[q], low[q]);
    // The unpacks above and the packs here permute alike, so the bytes come out in order.
    store(out + x, _mm256_packus_epi16(_mm256_packs_epi32(sum[0], sum[1]),
                                       _mm256_packs_epi32(sum[2], sum[3])));
  }
}

constexpr ResampleKernels kKernels{weigh, tabulate, horizontal, vertical};

}  // namespace

const ResampleKernels* resample_kernels_avx2() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const ResampleKernels* resample_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
