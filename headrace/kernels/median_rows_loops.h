// SPDX-License-Identifier: Apache-2.0
// The loop of median_rows.cc in lanes of bytes. Included by median_rows.cc, and by each level's
// file after its lanes, between its target pragmas. Internal to kernels/.
//
// Note [Medians by sorting networks]
// Columns are sorted, then the rows of what came out: in such a table an element has all above and
// left of it below itself. So few are left that can be the median, and of those too small and too
// large equally many were dropped. Of the rest the least and the most are taken away by turns, and
// others come in, until one is left.
#pragma once

#include "headrace/kernels/median_rows_levels.h"

namespace headrace {
namespace {

void order(Bytes& a, Bytes& b) {
  const Bytes low = least_of(a, b);
  b = most_of(a, b);
  a = low;
}

template <int size>
void sort_by(Bytes* values, int step) {
  for (int end = size - 1; end > 0; --end) {
    for (int i = 0; i < end; ++i) order(values[i * step], values[(i + 1) * step]);
  }
}

// Of an odd number of values, which are overwritten.
template <int count>
Bytes median_of(Bytes* values) {
  if constexpr (count == 1) return values[0];
  int held = count / 2 + 2, next = held;  // so many cannot all lie on one side of the median
  int first = 0;
  while (true) {
    // The least to the front, the most to the end.
    Bytes* const at = values + first;
    for (int i = 0; i < held / 2; ++i) order(at[i], at[held - 1 - i]);
    for (int i = 1; i < (held + 1) / 2; ++i) order(at[0], at[i]);
    for (int i = held / 2; i < held - 1; ++i) order(at[i], at[held - 1]);
    if (held == 3) return at[1];
    // Both go, and one more comes in their place.
    at[held - 1] = values[next++];
    ++first;
    --held;
  }
}

template <int size>
constexpr int candidates() {
  int found = 0;
  for (int r = 1; r <= size; ++r) {
    for (int c = 1; c <= size; ++c) {
      found +=
          2 * r * c <= size * size + 1 && 2 * (size + 1 - r) * (size + 1 - c) <= size * size + 1;
    }
  }
  return found;
}

template <int size>
void medians(const uint8_t* const rows[], int count, uint8_t* out) {
  for (int x = 0; x < count; x += kBytes) {
    Bytes table[size * size];
    for (int c = 0; c < size; ++c) {
      for (int r = 0; r < size; ++r) table[r * size + c] = bytes_at(rows[r] + x + c);
      sort_by<size>(table + c, size);
    }
    for (int r = 0; r < size; ++r) sort_by<size>(table + r * size, 1);
    Bytes left[candidates<size>() + 1];
    int found = 0;
    for (int r = 1; r <= size; ++r) {
      for (int c = 1; c <= size; ++c) {
        if (2 * r * c > size * size + 1 || 2 * (size + 1 - r) * (size + 1 - c) > size * size + 1) {
          continue;
        }
        left[found++] = table[(r - 1) * size + c - 1];
      }
    }
    store(out + x, median_of<candidates<size>()>(left));
  }
}

constexpr MedianKernels kKernels{{medians<3>, medians<5>, medians<7>}};

}  // namespace
}  // namespace headrace
