// SPDX-License-Identifier: Apache-2.0
// Resampling with AVX2. Scalar reference: resample_scalar.cc.
//
// Note [Two parts of a weight]
// A weight of 22 bits is top * 2^16 + low with -2^15 <= low < 2^15. Both are multiplied with two
// samples at a time: tops are bytes and give 16-bit sums (VPMADDUBSW), which cannot saturate,
// because a filter's weights of one sign add up to far less than 2; lows are words and give 32-bit
// sums (VPMADDWD). A result needs the whole sum without its last 16 bits: the sum of tops, plus the
// upper 16 bits of the sum of lows. Both may wrap in between.
#include "headrace/kernels/resample/resample_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2,bmi2");

namespace headrace {
namespace {

using Reach = ResampleTables::Reach;
constexpr int kLowBits = 16;

__m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
void store(void* to, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }
__m128i load_half(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }

// Four outputs of filter_weight(), with the same operations in the same order.
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
        // -0.0 gets the bias -0.5 here and 0.5 in the scalar reference; both round to 0.
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
  } else {  // rarely used, and needs sines
    resample_kernels_scalar()->weigh(job);
  }
}

// Digits: [output / 16][pair of taps], the weights of two taps for 16 outputs; outputs 0 to 3 and 8
// to 11 are in the first half of low, as VPUNPCKLBW needs them.
struct alignas(32) PairOfTaps {
  int8_t top[16][2];
  int16_t low[2][2][4][2];
};

const PairOfTaps* pairs_of(const ResampleTables& t) {
  return reinterpret_cast<const PairOfTaps*>(t.digits.data());
}

// Two bytes as a word in each 32 bits.
__m256i tops_of(__m256i even, __m256i odd) {
  const __m256i half = _mm256_set1_epi32(1 << (kLowBits - 1)), byte = _mm256_set1_epi32(255);
  const __m256i a = _mm256_srai_epi32(_mm256_add_epi32(even, half), kLowBits);
  const __m256i b = _mm256_srai_epi32(_mm256_add_epi32(odd, half), kLowBits);
  return _mm256_or_si256(_mm256_and_si256(a, byte),
                         _mm256_slli_epi32(_mm256_and_si256(b, byte), 8));
}

void make_pairs(ResampleTables& t) {
  t.pairs = (*std::max_element(t.count.begin(), t.count.end()) + 1) / 2;
  t.digits.resize(size_t(t.padded / 16) * t.pairs * sizeof(PairOfTaps));
  auto* pair = reinterpret_cast<PairOfTaps*>(t.digits.data());
  for (int i = 0; i < t.padded; i += 16) {
    for (int p = 0; p < t.pairs; ++p, ++pair) {
      const int32_t* const even = t.weights.data() + size_t(2 * p) * t.padded + i;
      const int32_t* const odd = even + t.padded;
      __m256i top[2], low[2];
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const __m256i a = load(even + 8 * half), b = load(odd + 8 * half);
        top[half] = tops_of(a, b);
        low[half] = _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa);
      }
      store(pair->top, _mm256_permute4x64_epi64(_mm256_packus_epi32(top[0], top[1]), 0xd8));
      store(pair->low[0], _mm256_permute2x128_si256(low[0], low[1], 0x20));
      store(pair->low[1], _mm256_permute2x128_si256(low[0], low[1], 0x31));
    }
  }
}

// Start of the window of each group of outputs, and the width of the widest window.
int place_windows(ResampleTables& t, int group) {
  int widest = 0;
  t.base.resize(t.padded / group);
  for (int i = 0; i < t.padded; i += group) {
    const int a = std::min(i, t.outputs - 1), b = std::min(i + group - 1, t.outputs - 1);
    const int low = std::min(t.first[a], t.first[b]);
    const int high = std::max(t.first[a] + t.count[a], t.first[b] + t.count[b]);
    t.base[i / group] = low;
    widest = std::max(widest, high - low);
  }
  return widest;
}

// For 16 outputs: where each begins in the window.
__m128i begins_of(const ResampleTables& t, int i, int group) {
  alignas(16) uint8_t begins[16];
#pragma GCC unroll 16
  for (int o = 0; o < 16; ++o) {
    begins[o] = static_cast<uint8_t>(t.first[i + o] - t.base[(i + o) / group]);
  }
  return _mm_load_si128(reinterpret_cast<const __m128i*>(begins));
}

// Shuffles: [output / 16][pair] of 32 bytes, two per output. Taps past an output's count may wrap
// around; their weights are zero.
void make_indices(ResampleTables& t) {
  t.indices.resize(size_t(t.padded) * t.pairs * 2);
  uint8_t* to = t.indices.data();
  for (int i = 0; i < t.padded; i += 16) {
    const __m128i begins = begins_of(t, i, 8);
    __m256i at =
        _mm256_set_m128i(_mm_unpackhi_epi8(begins, begins), _mm_unpacklo_epi8(begins, begins));
    at = _mm256_add_epi8(at, _mm256_set1_epi16(0x0100));
    for (int p = 0; p < t.pairs; ++p, to += 32) {
      store(to, at);
      at = _mm256_add_epi8(at, _mm256_set1_epi8(2));
    }
  }
}

// The same for two windows: [output / 16][pair] of two times 32 bytes, which become words.
void make_wide_indices(ResampleTables& t) {
  t.indices.resize(size_t(t.padded) * t.pairs * 4);
  uint8_t* to = t.indices.data();
  const __m256i twice = _mm256_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3,  //
                                         8, 8, 8, 8, 9, 9, 9, 9, 10, 10, 10, 10, 11, 11, 11, 11);
  const __m256i second = _mm256_set1_epi32(0x00010000);
  const __m256i zeros = _mm256_set1_epi16(static_cast<short>(0x8000));
  for (int i = 0; i < t.padded; i += 16) {
    const __m256i begins = _mm256_broadcastsi128_si256(begins_of(t, i, 4));
    __m256i at[2] = {_mm256_shuffle_epi8(begins, twice),
                     _mm256_shuffle_epi8(_mm256_srli_epi64(begins, 32), twice)};
    for (int p = 0; p < t.pairs; ++p, to += 64) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const __m256i pair = _mm256_add_epi8(at[half], second);
        store(to + 32 * half, _mm256_or_si256(pair, zeros));
        at[half] = _mm256_add_epi8(at[half], _mm256_set1_epi16(2));
      }
    }
  }
}

// kLong: the weights of 16 taps of outputs 4 apart, so that sums of eight outputs come out in
// order.
struct alignas(32) LongTaps {
  int8_t top[2][16];
  int16_t low[2][2][8];  // taps 0 to 7 and 8 to 15, as VPUNPCKLBW and VPUNPCKHBW take them
};

// `indices` holds them: [output / 8][output % 4][tap / 16].
void make_long_taps(ResampleTables& t) {
  t.long_taps = (t.taps + 15) / 16 * 16;
  const int parts = t.long_taps / 16;
  t.indices.resize(size_t(t.padded / 2) * parts * sizeof(LongTaps));
  std::memset(t.indices.data(), 0, t.indices.size());
  auto* const to = reinterpret_cast<LongTaps*>(t.indices.data());
  for (int i = 0; i < t.outputs; ++i) {
    LongTaps* const of = to + size_t(i / 8 * 4 + i % 4) * parts;
    const int lane = i / 4 % 2;
    for (int tap = 0; tap < t.count[i]; ++tap) {
      const int32_t weight = t.weights[size_t(tap) * t.padded + i];
      const int32_t top = (weight + (1 << (kLowBits - 1))) >> kLowBits;
      of[tap / 16].top[lane][tap % 16] = static_cast<int8_t>(top);
      of[tap / 16].low[tap / 8 % 2][lane][tap % 8] =
          static_cast<int16_t>(weight - top * (1 << kLowBits));
    }
  }
}

void tabulate(ResampleTables& t) {
  constexpr int kWindowBytes = 16;
  make_pairs(t);
  if (place_windows(t, 8) <= kWindowBytes) {
    t.reach = Reach::kWindow;
    make_indices(t);
  } else if (place_windows(t, 4) <= kWindowBytes) {
    t.reach = Reach::kWideWindow;
    make_wide_indices(t);
  } else {
    t.reach = Reach::kLong;
    make_long_taps(t);
  }
}

// Sums without their last 16 bits -> rounded results.
__m256i rounded(__m256i top, __m256i low0, __m256i low1) {
  const __m256i above =
      _mm256_packs_epi32(_mm256_srai_epi32(low0, kLowBits), _mm256_srai_epi32(low1, kLowBits));
  constexpr int kLeft = 22 - kLowBits;
  return _mm256_mulhrs_epi16(_mm256_add_epi16(top, above), _mm256_set1_epi16(1 << (15 - kLeft)));
}

__m256i two_windows(const uint8_t* a, const uint8_t* b) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load_half(a)), load_half(b), 1);
}

// 16 outputs at a time, from two windows or four. kPairs: t.pairs, or 0 for any number.
template <int kPairs, bool kWide>
void horizontal_windows(const ResampleTables& t, const uint8_t* in, uint8_t* out) {
  const __m256i zero = _mm256_setzero_si256();
  const int pairs = kPairs ? kPairs : t.pairs;
  const PairOfTaps* pair = pairs_of(t);
  const uint8_t* index = t.indices.data();
  const int32_t* base = t.base.data();
  for (int i = 0; i < t.padded; i += 16, base += kWide ? 4 : 2) {
    const __m256i near = two_windows(in + base[0], in + base[kWide ? 2 : 1]);
    const __m256i far = kWide ? two_windows(in + base[1], in + base[3]) : zero;
    __m256i top = zero, low[2] = {zero, zero};
    for (int p = 0; p < pairs; ++p, ++pair, index += kWide ? 64 : 32) {
      __m256i bytes, words[2];
      if constexpr (kWide) {
        words[0] = _mm256_shuffle_epi8(near, load(index));
        words[1] = _mm256_shuffle_epi8(far, load(index + 32));
        bytes = _mm256_packus_epi16(words[0], words[1]);
      } else {
        bytes = _mm256_shuffle_epi8(near, load(index));
        words[0] = _mm256_unpacklo_epi8(bytes, zero);
        words[1] = _mm256_unpackhi_epi8(bytes, zero);
      }
      top = _mm256_add_epi16(top, _mm256_maddubs_epi16(bytes, load(pair->top)));
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        low[half] =
            _mm256_add_epi32(low[half], _mm256_madd_epi16(words[half], load(pair->low[half])));
      }
    }
    const __m256i words = rounded(top, low[0], low[1]);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(out + i),
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
}

// Sums of eight outputs; the four partial sums of an output are adjacent in a half of `part[output
// % 4]`.
__m256i sums_of(const __m256i part[4]) {
  return _mm256_hadd_epi32(_mm256_hadd_epi32(part[0], part[1]),
                           _mm256_hadd_epi32(part[2], part[3]));
}

// Eight outputs at a time, each with its own window. kParts: groups of 16 taps, or 0 for any
// number.
template <int kParts>
void horizontal_long(const ResampleTables& t, const uint8_t* in, uint8_t* out) {
  const __m256i zero = _mm256_setzero_si256(), ones = _mm256_set1_epi16(1);
  const __m256i half = _mm256_set1_epi32(1 << 21);
  const int parts = kParts ? kParts : t.long_taps / 16;
  // Weights are zero where a window ends before its last part; the samples there must not be read.
  const int last = t.outputs - 1;
  const int end = std::max(t.first[0] + t.count[0], t.first[last] + t.count[last]);
  const auto* taps = reinterpret_cast<const LongTaps*>(t.indices.data());
  for (int i = 0; i < t.outputs; i += 8) {
    __m256i sum[4];
#pragma GCC unroll 4
    for (int o = 0; o < 4; ++o) {
      int near = t.first[i + o], far = t.first[i + o + 4];
      sum[o] = zero;
      for (int part = 0; part < parts; ++part, ++taps) {
        const __m256i x = two_windows(in + near, in + far);
        near = std::min(near + 16, end);
        far = std::min(far + 16, end);
        const __m256i top = _mm256_madd_epi16(_mm256_maddubs_epi16(x, load(taps->top)), ones);
        const __m256i low =
            _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpacklo_epi8(x, zero), load(taps->low[0])),
                             _mm256_madd_epi16(_mm256_unpackhi_epi8(x, zero), load(taps->low[1])));
        sum[o] = _mm256_add_epi32(sum[o], _mm256_add_epi32(_mm256_slli_epi32(top, kLowBits), low));
      }
    }
    const __m256i whole = _mm256_srai_epi32(_mm256_add_epi32(sums_of(sum), half), 22);
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out + i), _mm_packus_epi16(words, words));
  }
}

void horizontal(const ResampleTables& t, const uint8_t* const in[], int channels, uint8_t* out,
                ptrdiff_t plane) {
  const bool is_long = t.reach == Reach::kLong;
  const auto plane_of = is_long && t.long_taps == 16    ? horizontal_long<1>
                        : is_long                       ? horizontal_long<0>
                        : t.reach == Reach::kWideWindow ? horizontal_windows<0, true>
                        : t.pairs == 1                  ? horizontal_windows<1, false>
                        : t.pairs == 2                  ? horizontal_windows<2, false>
                                                        : horizontal_windows<0, false>;
  for (int c = 0; c < channels; ++c) plane_of(t, in[c], out + c * plane);
}

// kPairs: pairs of taps, or 0 for any number.
template <int kPairs>
void vertical_pairs(const ResampleTables& t, int output, const uint8_t* const rows[], int bytes,
                    uint8_t* out) {
  const __m256i zero = _mm256_setzero_si256();
  const int pairs = kPairs ? kPairs : (t.count[output] + 1) / 2;
  const PairOfTaps* const pair = pairs_of(t) + size_t(output / 16) * t.pairs;
  const int half = output / 4 % 2, lane = output / 8 % 2, at = output % 4;
  for (int x = 0; x < bytes; x += 32) {
    __m256i top[2] = {zero, zero}, low[4] = {zero, zero, zero, zero};
    for (int p = 0; p < pairs; ++p) {
      int16_t tops;
      int32_t lows;
      std::memcpy(&tops, pair[p].top[output % 16], sizeof tops);
      std::memcpy(&lows, pair[p].low[half][lane][at], sizeof lows);
      const __m256i by_top = _mm256_set1_epi16(tops), by_low = _mm256_set1_epi32(lows);
      const __m256i a = load(rows[2 * p] + x), b = load(rows[2 * p + 1] + x);
      const __m256i ab[2] = {_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)};
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        top[i] = _mm256_add_epi16(top[i], _mm256_maddubs_epi16(ab[i], by_top));
        const __m256i words[2] = {_mm256_unpacklo_epi8(ab[i], zero),
                                  _mm256_unpackhi_epi8(ab[i], zero)};
        low[2 * i] = _mm256_add_epi32(low[2 * i], _mm256_madd_epi16(words[0], by_low));
        low[2 * i + 1] = _mm256_add_epi32(low[2 * i + 1], _mm256_madd_epi16(words[1], by_low));
      }
    }
    // The unpacks above and the packs here permute alike, so the bytes come out in order.
    store(out + x,
          _mm256_packus_epi16(rounded(top[0], low[0], low[1]), rounded(top[1], low[2], low[3])));
  }
}

void vertical(const ResampleTables& t, int output, const uint8_t* const rows[], int bytes,
              uint8_t* out) {
  switch ((t.count[output] + 1) / 2) {
    case 1:
      return vertical_pairs<1>(t, output, rows, bytes, out);
    case 2:
      return vertical_pairs<2>(t, output, rows, bytes, out);
    default:
      return vertical_pairs<0>(t, output, rows, bytes, out);
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
