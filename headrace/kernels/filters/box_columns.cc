// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include <algorithm>
#include <array>
#include <cstddef>

#include "headrace/kernels/filters/filter_rows.h"

namespace headrace {
namespace scalar {
namespace {

void filter_columns(const uint8_t* in, int height, const BoxWeights& weights, uint8_t* out) {
  const auto row = [&](int64_t y) {
    return in + std::clamp<int64_t>(y, 0, height - 1) * kBoxColumns;
  };
  const int64_t reach = weights.reach;
  std::array<uint32_t, kBoxColumns> sums{};  // sums over the box of the row above row 0
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
}  // namespace scalar
}  // namespace headrace

#define HEADRACE_OWN_SCALAR
#define HEADRACE_KERNEL "headrace/kernels/filters/box_columns.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {

BoxWeights BoxWeights::of(float radius) {
  constexpr uint32_t kOne = 1 << 24;
  BoxWeights out{.reach = static_cast<int>(radius)};
  out.inside = static_cast<uint32_t>(static_cast<float>(kOne) / (radius * 2 + 1));
  out.end = (kOne - static_cast<uint32_t>(out.reach * 2 + 1) * out.inside) / 2;
  return out;
}

void box_columns(const uint8_t* in, int height, const BoxWeights& weights, uint8_t* out) {
  HEADRACE_BY_LEVEL(filter_columns)(in, height, weights, out);
}

}  // namespace headrace

#else  // at each SIMD level

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

// Computes 16 columns, whose sums stay in registers.
struct Sixteen {
  static constexpr int kVectors = 16 / kLanes;

  static Sixteen at(const uint8_t* from) {
    Sixteen v;
    LoadSixteen(from, v.of);
    return v;
  }
  // Vector k is make(k).
  template <class Make>
  static Sixteen made(const Make& make) {
    Sixteen v;
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) v.of[k] = make(k);
    return v;
  }

  Ints of[kVectors];
};

inline Sixteen all_numbers(uint32_t v) {
  return Sixteen::made([&](int) { return Set(static_cast<int>(v)); });
}
inline Sixteen sum(const Sixteen& a, const Sixteen& b) {
  return Sixteen::made([&](int k) { return Add(a.of[k], b.of[k]); });
}
inline Sixteen difference(const Sixteen& a, const Sixteen& b) {
  return Sixteen::made([&](int k) { return Sub(a.of[k], b.of[k]); });
}
inline Sixteen product(const Sixteen& a, uint32_t by) {
  const Ints factor = Set(static_cast<int>(by));
  return Sixteen::made([&](int k) { return Mul(a.of[k], factor); });
}

// Sums over the box of the row above row 0. Rows beyond the ends repeat the first or last row.
inline Sixteen sums_before(const uint8_t* in, int64_t height, int64_t reach) {
  Sixteen sums = product(Sixteen::at(in), static_cast<uint32_t>(reach + 1));
  const int64_t whole = std::min(reach, height);
  for (int64_t y = 0; y < whole; ++y) sums = sum(sums, Sixteen::at(in + y * kBoxColumns));
  const Sixteen last = Sixteen::at(in + (height - 1) * kBoxColumns);
  return sum(sums, product(last, static_cast<uint32_t>(reach - whole)));
}

void filter_columns(const uint8_t* in, int height, const BoxWeights& weights, uint8_t* out) {
  const int64_t reach = weights.reach, end = int64_t{height} - 1;
  for (int x = 0; x < kBoxColumns; x += 16, in += 16, out += 16) {
    Sixteen sums = sums_before(in, height, reach);
    Sixteen last = Sixteen::at(in + std::min(reach, end) * kBoxColumns);
    for (int64_t y = 0; y <= end; ++y) {
      const Sixteen before = Sixteen::at(in + std::max<int64_t>(y - reach - 1, 0) * kBoxColumns);
      const Sixteen after = Sixteen::at(in + std::min(y + reach + 1, end) * kBoxColumns);
      sums = difference(sum(sums, last), before);
      const Sixteen all =
          sum(product(sums, weights.inside), product(sum(before, after), weights.end));
      StoreSixteenUpperBytes(out + y * kBoxColumns, sum(all, all_numbers(1u << 23)).of);
      last = after;
    }
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
