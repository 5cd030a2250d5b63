// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include "headrace/kernels/filters/filter_rows.h"

#define HEADRACE_KERNEL "headrace/kernels/filters/mean_rows.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {

void mean_row(const uint8_t* const rows[], int n, int count, uint8_t* out) {
  HEADRACE_BY_LEVEL(mean_of)(rows, n, count, out);
}

}  // namespace headrace

#else  // at each SIMD level

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

// Rounding half up is (2 sum + n) / (2 n), by a product and a shift that are exact for all sums of
// up to 127 bytes and stay below 2^32; a remainder of zero means it was a tie.
void mean_of(const uint8_t* const rows[], int n, int count, uint8_t* out) {
  constexpr int kShift = 24;
  const Ints twice = Set(2 * n), factor = Set(((1 << kShift) + 2 * n - 1) / (2 * n));
  for (int i = 0; i < count; i += kLanes) {
    Ints total = LoadBytesAsInts(rows[0] + i);
    for (int r = 1; r < n; ++r) total = Add(total, LoadBytesAsInts(rows[r] + i));
    const Ints of = Add(Add(total, total), Set(n));
    const Ints mean = ShiftRight<kShift>(Mul(of, factor));
    const Ints rest = Sub(of, Mul(mean, twice));
    const Ints was_middle = Sub(Set(1), Min(rest, Set(1)));
    StoreAsBytes(out + i, Sub(mean, And(was_middle, mean)));
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
