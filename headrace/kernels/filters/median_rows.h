// SPDX-License-Identifier: Apache-2.0
// Medians of square neighborhoods of 8 bits. Any thread may call it.
#pragma once

#include <cstdint>

namespace headrace {

inline constexpr int kWidestMedian = 7;

// out[x]: the median of rows[0 .. size - 1], columns x to x + size - 1. Rows are readable, and
// `out` is writable, up to 64 bytes past the end. REQUIRES: size is 3, 5 or 7.
void median_row(const uint8_t* const rows[], int size, int count, uint8_t* out);

}  // namespace headrace
