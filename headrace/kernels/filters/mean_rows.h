// SPDX-License-Identifier: Apache-2.0
// Means of several 8-bit rows. Any thread may call it.
#pragma once

#include <cstdint>

namespace headrace {

// out[x]: the mean of rows[0 .. n - 1][x], rounded to nearest, ties to even. May read and write up
// to 63 bytes past `count` samples of each row. REQUIRES: 1 <= n <= 127.
void mean_row(const uint8_t* const rows[], int n, int count, uint8_t* out);

}  // namespace headrace
