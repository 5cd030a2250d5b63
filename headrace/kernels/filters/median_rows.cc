// SPDX-License-Identifier: Apache-2.0
//
// Note [Medians by sorting networks]
// Columns are sorted, once for all neighborhoods that contain them, and then the rows of the
// result. In such a table each element is at least as large as all those above and to the left of
// it. So only a few elements can be the median, and equally many were dropped because they are too
// small and because they are too large. From the rest, the minimum and maximum are removed
// repeatedly while others are added, until one is left. All of it unrolls, and sorting dropped
// elements among themselves is dead code.
#ifndef HEADRACE_LEVEL

#include "headrace/kernels/filters/filter_rows.h"

#define HEADRACE_KERNEL "headrace/kernels/filters/median_rows.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {

void median_row(const uint8_t* const rows[], int size, int count, uint8_t* out) {
  if (size == 3) return HEADRACE_BY_LEVEL(medians<3>)(rows, count, out);
  if (size == 5) return HEADRACE_BY_LEVEL(medians<5>)(rows, count, out);
  HEADRACE_BY_LEVEL(medians<7>)(rows, count, out);
}

}  // namespace headrace

#else  // at each SIMD level

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

[[gnu::always_inline]] inline void order(Words& a, Words& b) {
  const Words low = MinBytes(a, b);
  b = MaxBytes(a, b);
  a = low;
}

struct Exchange {
  int low, high;
};
// The networks with the fewest exchanges (Knuth, 5.3.4).
constexpr Exchange kSort3[] = {{0, 1}, {1, 2}, {0, 1}};
constexpr Exchange kSort5[] = {{0, 3}, {1, 4}, {0, 2}, {1, 3}, {0, 1},
                               {2, 4}, {1, 2}, {3, 4}, {2, 3}};
constexpr Exchange kSort7[] = {{0, 6}, {2, 3}, {4, 5}, {0, 2}, {1, 4}, {3, 6}, {0, 1}, {2, 5},
                               {3, 4}, {1, 2}, {4, 6}, {2, 3}, {4, 5}, {1, 2}, {3, 4}, {5, 6}};

template <int size>
[[gnu::always_inline]] inline void sort(Words* values) {
  if constexpr (size == 3) {
#pragma GCC unroll 16
    for (const Exchange& each : kSort3) order(values[each.low], values[each.high]);
  } else if constexpr (size == 5) {
#pragma GCC unroll 16
    for (const Exchange& each : kSort5) order(values[each.low], values[each.high]);
  } else {
#pragma GCC unroll 16
    for (const Exchange& each : kSort7) order(values[each.low], values[each.high]);
  }
}

// Median of `held` values and those starting at `next`, which are added as the smallest and largest
// are dropped.
template <int held>
[[gnu::always_inline]] inline Words median_of(Words* values, const Words* next) {
#pragma GCC unroll 32
  for (int i = 0; i < held / 2; ++i) order(values[i], values[held - 1 - i]);
#pragma GCC unroll 32
  for (int i = 1; i < (held + 1) / 2; ++i) order(values[0], values[i]);
#pragma GCC unroll 32
  for (int i = held / 2; i < held - 1; ++i) order(values[i], values[held - 1]);
  if constexpr (held == 3) {
    return values[1];
  } else {
    values[held - 1] = *next;
    return median_of<held - 1>(values + 1, next + 1);
  }
}

// Whether the element of rank r in its column and rank c in its row can be the median.
template <int size>
constexpr bool is_candidate(int r, int c) {
  constexpr int kMiddle = size * size / 2 + 1;
  return (r + 1) * (c + 1) <= kMiddle && (size - r) * (size - c) <= kMiddle;
}
template <int size>
constexpr int candidates() {
  int found = 0;
  for (int at = 0; at < size * size; ++at) found += is_candidate<size>(at / size, at % size);
  return found;
}

template <int size>
void medians(const uint8_t* const rows[], int count, uint8_t* out) {
  constexpr int kPart = 512, kCandidates = candidates<size>();
  uint8_t sorted[size][kPart + 2 * kByteLanes + size];  // columns
  for (int first = 0; first < count; first += kPart) {
    const int part = std::min(kPart, count - first);
    for (int x = 0; x < part + size; x += kByteLanes) {
      Words column[size];
#pragma GCC unroll 8
      for (int r = 0; r < size; ++r) column[r] = LoadBytes(rows[r] + first + x);
      sort<size>(column);
#pragma GCC unroll 8
      for (int r = 0; r < size; ++r) StoreBytes(sorted[r] + x, column[r]);
    }
    for (int x = 0; x < part; x += kByteLanes) {
      Words left[kCandidates];
      int found = 0;
#pragma GCC unroll 8
      for (int r = 0; r < size; ++r) {
        Words row[size];
#pragma GCC unroll 8
        for (int c = 0; c < size; ++c) row[c] = LoadBytes(sorted[r] + x + c);
        sort<size>(row);
#pragma GCC unroll 8
        for (int c = 0; c < size; ++c) {
          if (is_candidate<size>(r, c)) left[found++] = row[c];
        }
      }
      constexpr int kHeld = kCandidates / 2 + 2;  // not all of them on one side of the median
      StoreBytes(out + first + x, median_of<kHeld>(left, left + kHeld));
    }
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
