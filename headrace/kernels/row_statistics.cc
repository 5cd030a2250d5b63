// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/row_statistics.h"

#include <algorithm>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace headrace {

uint64_t sum_of_row(const uint8_t* row, int64_t count) {
  uint64_t sum = 0;
  int64_t i = 0;
#if defined(__SSE2__)  // part of every x86-64
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

// In lanes: compilers keep each in a register.
void extend_by_row(const uint8_t* row, int64_t count, uint8_t& least, uint8_t& most) {
  constexpr int kLanes = 64;
  uint8_t low[kLanes], high[kLanes];
  std::fill_n(low, kLanes, least);
  std::fill_n(high, kLanes, most);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) low[lane] = std::min(low[lane], row[i + lane]);
    for (int lane = 0; lane < kLanes; ++lane) high[lane] = std::max(high[lane], row[i + lane]);
  }
  for (; i < count; ++i) {
    low[0] = std::min(low[0], row[i]);
    high[0] = std::max(high[0], row[i]);
  }
  least = *std::min_element(low, low + kLanes);
  most = *std::max_element(high, high + kLanes);
}

// Four counters a value: a row of one colour would wait for its own last increment.
void count_row(const uint8_t* row, int64_t count, int64_t histogram[256]) {
  constexpr int64_t kPart = int64_t{1} << 30;
  for (int64_t first = 0; first < count; first += kPart) {
    uint32_t counts[4][256] = {};
    const int64_t last = std::min(count, first + kPart);
    int64_t i = first;
    for (; i + 4 <= last; i += 4) {
      for (int lane = 0; lane < 4; ++lane) ++counts[lane][row[i + lane]];
    }
    for (; i < last; ++i) ++counts[0][row[i]];
    for (int value = 0; value < 256; ++value) {
      for (const auto& lane : counts) histogram[value] += lane[value];
    }
  }
}

}  // namespace headrace
