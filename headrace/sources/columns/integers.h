// SPDX-License-Identifier: Apache-2.0
// Functions on dense integer arrays whose dtype is known at run time: convert, find extremes,
// search. Thread-safe. All REQUIRE an integer dtype and native byte order; memory may be unaligned.
#pragma once

#include <cstdint>
#include <optional>

#include "headrace/base/dtype.h"

namespace headrace {

// uint64 values above the maximum of int64 are clamped to it.
struct IntegerRange {
  int64_t lowest = 0, highest = 0;
};

bool is_integer(DType dtype);
IntegerRange range_of_integers(DType dtype);
// The lowest and highest of `count` values. REQUIRES: count > 0.
IntegerRange extremes_of(const uint8_t* values, DType dtype, int64_t count);
// Index of the first element equal to `value`, or `count`.
int64_t first_equal(const uint8_t* values, DType dtype, int64_t count, int64_t value);
// REQUIRES: each value fits into `to`.
void convert_integers(const uint8_t* in, DType from, int64_t count, DType to, uint8_t* out);
// If not all values fit into `to`: the lowest value if it is too low, else the highest; uint64
// values are returned as their bits.
std::optional<int64_t> unrepresentable_value(const uint8_t* values, DType from, int64_t count,
                                             DType to);
// REQUIRES: the value fits.
void fill_integers(uint8_t* out, DType dtype, int64_t count, int64_t value);

}  // namespace headrace
