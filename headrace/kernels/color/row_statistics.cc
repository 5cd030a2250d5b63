// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "headrace/kernels/color/color_rows.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace headrace {

uint64_t sum_of_row(const uint8_t* row, int64_t count) {
  uint64_t sum = 0;
  int64_t i = 0;
#if defined(__SSE2__)  // part of baseline x86-64
  __m128i sums = _mm_setzero_si128();
  for (; i + 16 <= count; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + i));
    sums = _mm_add_epi64(sums, _mm_sad_epu8(bytes, _mm_setzero_si128()));
  }
  sum = static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_add_epi64(sums, _mm_srli_si128(sums, 8))));
#endif
  for (; i < count; ++i) sum += row[i];
  return sum;
}

void extend_by_row(const uint8_t* row, int64_t count, uint8_t& least, uint8_t& most) {
  int64_t i = 0;
#if defined(__SSE2__)
  constexpr int kLanes = 16;
  __m128i low[2], high[2];  // two accumulators of each, to break the dependency chain
  std::fill_n(low, 2, _mm_set1_epi8(static_cast<char>(least)));
  std::fill_n(high, 2, _mm_set1_epi8(static_cast<char>(most)));
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    for (int part = 0; part < 2; ++part) {
      const void* const from = row + i + part * kLanes;
      const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(from));
      low[part] = _mm_min_epu8(low[part], bytes);
      high[part] = _mm_max_epu8(high[part], bytes);
    }
  }
  uint8_t lows[kLanes], highs[kLanes];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(lows), _mm_min_epu8(low[0], low[1]));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(highs), _mm_max_epu8(high[0], high[1]));
  least = *std::min_element(lows, lows + kLanes);
  most = *std::max_element(highs, highs + kLanes);
#endif
  for (; i < count; ++i) {
    least = std::min(least, row[i]);
    most = std::max(most, row[i]);
  }
}

// Eight counters per value: in a row of few colors, each increment would wait for the last one.
void count_row(const uint8_t* row, int64_t count, int64_t histogram[256]) {
  constexpr int64_t kPart = int64_t{1} << 30;
  for (int64_t first = 0; first < count; first += kPart) {
    uint32_t counts[8][256] = {};
    const int64_t last = std::min(count, first + kPart);
    int64_t i = first;
    for (; i + 8 <= last; i += 8) {
      uint64_t eight;  // one load for eight values
      std::memcpy(&eight, row + i, sizeof eight);
#pragma GCC unroll 8
      for (int lane = 0; lane < 8; ++lane) ++counts[lane][uint8_t(eight >> (8 * lane))];
    }
    for (; i < last; ++i) ++counts[0][row[i]];
    for (int value = 0; value < 256; ++value) {
      for (const auto& lane : counts) histogram[value] += lane[value];
    }
  }
}

}  // namespace headrace
