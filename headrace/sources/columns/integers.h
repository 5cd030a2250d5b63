// SPDX-License-Identifier: Apache-2.0
// Dense integers of a dtype that is known at run time: converted, measured, searched.
// Thread-safe. REQUIRES throughout: an integer dtype of at most 64 bits, native order; memory may
// lie anywhere.
#pragma once

#include <cstdint>
#include <optional>

#include "headrace/base/dtype.h"

namespace headrace {

// Values of uint64 above int64's count as its largest.
struct IntegerRange {
  int64_t lowest = 0, highest = 0;
};

bool is_integer(DType dtype);
IntegerRange range_of_integers(DType dtype);
// Of `count` values; REQUIRES: count > 0.
IntegerRange extremes_of(const uint8_t* values, DType dtype, int64_t count);
// Number of the first value that is this one, or `count`.
int64_t first_equal(const uint8_t* values, DType dtype, int64_t count, int64_t value);
// REQUIRES: each value fits into `to`.
void convert_integers(const uint8_t* in, DType from, int64_t count, DType to, uint8_t* out);
// The value that is farthest from fitting into `to`, if one does not; of uint64 its bits.
std::optional<int64_t> misfit_of(const uint8_t* values, DType from, int64_t count, DType to);
// REQUIRES: the value fits.
void fill_integers(uint8_t* out, DType dtype, int64_t count, int64_t value);

}  // namespace headrace
