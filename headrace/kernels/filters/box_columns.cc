// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/filters/box_columns.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/filters/box_columns_levels.h"

namespace headrace {
namespace {

void scalar(const uint8_t* in, int height, const BoxWeights& weights, uint8_t* out) {
  const auto row = [&](int64_t y) {
    return in + std::clamp<int64_t>(y, 0, height - 1) * kBoxColumns;
  };
  const int64_t reach = weights.reach;
  std::array<uint32_t, kBoxColumns> sums{};  // of the rows inside, before row 0: one further up
  for (int64_t y = -reach - 1; y < reach; ++y) {
    for (size_t x = 0; x < kBoxColumns; ++x) sums[x] += row(y)[x];
  }
  for (int64_t y = 0; y < height; ++y, out += kBoxColumns) {
    const uint8_t *const before = row(y - reach - 1), *const last = row(y + reach),
                         *const after = row(y + reach + 1);
    for (size_t x = 0; x < kBoxColumns; ++x) {
      sums[x] += uint32_t{last[x]} - before[x];
      const uint32_t ends = uint32_t{before[x]} + after[x];
      out[x] =
          static_cast<uint8_t>((sums[x] * weights.inside + ends * weights.end + (1u << 23)) >> 24);
    }
  }
}

}  // namespace

BoxWeights BoxWeights::of(float radius) {
  constexpr uint32_t kOne = 1 << 24;
  BoxWeights out{.reach = static_cast<int>(radius)};
  out.inside = static_cast<uint32_t>(static_cast<float>(kOne) / (radius * 2 + 1));
  out.end = (kOne - static_cast<uint32_t>(out.reach * 2 + 1) * out.inside) / 2;
  return out;
}

void box_columns(const uint8_t* in, int height, const BoxWeights& weights, uint8_t* out) {
  static const ByLevel<BoxColumns> by_level{scalar, box_columns_avx2(), box_columns_avx512(),
                                            box_columns_neon()};
  by_level.in_force()(in, height, weights, out);
}

}  // namespace headrace
