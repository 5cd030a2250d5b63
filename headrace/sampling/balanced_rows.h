// SPDX-License-Identifier: Apache-2.0
// Rows of a batch in an order of which every slice costs about as much as any other of its size, so
// that any number of ranks have equal work.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace {

// For each row the record that comes there, of `rows` that are sorted by cost. Bits are reversed,
// as in van der Corput's sequence: neighboring rows are far apart in cost, and so are the slices
// of any division alike. `turn`, which is drawn, decides which is first. REQUIRES: 0 <= turn <
// rows.
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
