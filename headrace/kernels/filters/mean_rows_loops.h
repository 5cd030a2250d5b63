// SPDX-License-Identifier: Apache-2.0
// The loop of mean_rows.cc in lanes. Included by mean_rows.cc with lanes of one number, and by each
// level's file after its own, between its target pragmas. Internal to kernels/.
#pragma once

#include "headrace/kernels/filters/mean_rows_levels.h"

namespace headrace {
namespace {

// Rounded up from the middle it is (2 sum + n) / (2 n), by a product and a shift that are exact for
// all sums of up to 127 bytes, and stay below 2^32; where nothing remains it was the middle.
void mean_of(const uint8_t* const rows[], int n, int count, uint8_t* out) {
  constexpr int kShift = 24;
  const Numbers twice = all(2 * n), factor = all(((1 << kShift) + 2 * n - 1) / (2 * n));
  for (int i = 0; i < count; i += kLanes) {
    Numbers total = numbers_at(rows[0] + i);
    for (int r = 1; r < n; ++r) total = sum(total, numbers_at(rows[r] + i));
    const Numbers of = sum(sum(total, total), all(n));
    const Numbers mean = shifted_down<kShift>(product(of, factor));
    const Numbers rest = difference(of, product(mean, twice));
    const Numbers was_middle = difference(all(1), least_of(rest, all(1)));
    store_bytes(out + i, difference(mean, common(was_middle, mean)));
  }
}

constexpr MeanKernels kKernels{mean_of};

}  // namespace
}  // namespace headrace
