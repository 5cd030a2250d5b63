// SPDX-License-Identifier: Apache-2.0
// Functions on the elements of dense arrays whose dtype is known at run time. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "headrace/base/dtype.h"
#include "headrace/base/tensor.h"

namespace headrace {

// --- Integers: convert, find extremes, search ---
// All REQUIRE an integer dtype and native byte order; memory may be unaligned.

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

// --- Any elements: from their order in a file to this machine's ---

// Swaps the byte order in place, and normalizes bools to 0 and 1.
void make_native(std::span<uint8_t> bytes, DType dtype, bool big_endian);

// Transposes an array from (H, W, C) to (C, H, W); `shape` is the latter. REQUIRES: three
// dimensions; `in` and `out` do not overlap.
void move_channels_first(const uint8_t* in, const Shape& shape, size_t element_bytes, uint8_t* out);

}  // namespace headrace
