// SPDX-License-Identifier: Apache-2.0
// Orders the rows of a batch so that all slices of equal size cost about the same, for any number
// of ranks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace {

// For each row the record placed there, of `rows` records that are sorted by cost. Uses bit
// reversal, as in van der Corput's sequence: neighboring rows are far apart in cost, so the slices
// of any division have similar costs. `turn`, which is random, decides which is first. REQUIRES: 0
// <= turn < rows.
inline std::vector<int64_t> balanced_rows(int64_t rows, int64_t turn) {
  std::vector<int64_t> out;
  out.reserve(size_t(rows));
  const int bits = std::bit_width(uint64_t(rows - 1));
  for (uint64_t i = 0; std::ssize(out) < rows; ++i) {
    uint64_t reversed = 0;
    for (int bit = 0; bit < bits; ++bit) reversed |= (i >> bit & 1) << (bits - 1 - bit);
    if (reversed < uint64_t(rows)) out.push_back((int64_t(reversed) + turn) % rows);
  }
  return out;
}

}  // namespace headrace
