// SPDX-License-Identifier: Apache-2.0
// The loops of box_columns.cc, over 16 columns at a time, whose sums stay in registers. Included by
// each level after its lanes. Internal to kernels/.
#pragma once

namespace headrace {
namespace {

// One further up than row 0's. A row beyond the ends counts as often as it is repeated.
inline Sixteen sums_before(const uint8_t* in, int64_t height, int64_t reach) {
  Sixteen sums = product(numbers_at(in), static_cast<uint32_t>(reach + 1));
  const int64_t whole = std::min(reach, height);
  for (int64_t y = 0; y < whole; ++y) sums = sum(sums, numbers_at(in + y * kBoxColumns));
  const Sixteen last = numbers_at(in + (height - 1) * kBoxColumns);
  return sum(sums, product(last, static_cast<uint32_t>(reach - whole)));
}

void filter_box_columns(const uint8_t* in, int height, const BoxWeights& weights, uint8_t* out) {
  const int64_t reach = weights.reach, end = int64_t{height} - 1;
  for (int x = 0; x < kBoxColumns; x += 16, in += 16, out += 16) {
    Sixteen sums = sums_before(in, height, reach);
    Sixteen last = numbers_at(in + std::min(reach, end) * kBoxColumns);
    for (int64_t y = 0; y <= end; ++y) {
      const Sixteen before = numbers_at(in + std::max<int64_t>(y - reach - 1, 0) * kBoxColumns);
      const Sixteen after = numbers_at(in + std::min(y + reach + 1, end) * kBoxColumns);
      sums = difference(sum(sums, last), before);
      const Sixteen all =
          sum(product(sums, weights.inside), product(sum(before, after), weights.end));
      store_upper_bytes(out + y * kBoxColumns, sum(all, all_numbers(1u << 23)));
      last = after;
    }
  }
}

}  // namespace
}  // namespace headrace
