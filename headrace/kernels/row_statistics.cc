// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/row_statistics.h"

#include <algorithm>

namespace headrace {

// In parts whose sum fits 32 bits, which compilers add up in many lanes.
uint64_t sum_of_row(const uint8_t* row, int64_t count) {
  constexpr int64_t kPart = int64_t{1} << 20;
  uint64_t sum = 0;
  for (int64_t first = 0; first < count; first += kPart) {
    uint32_t part = 0;
    const int64_t last = std::min(count, first + kPart);
    for (int64_t i = first; i < last; ++i) part += row[i];
    sum += part;
  }
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
