// SPDX-License-Identifier: Apache-2.0
// Converts array elements from their byte order in a file to this machine's. Thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/tensor.h"

namespace headrace {

// Swaps the byte order in place, and normalizes bools to 0 and 1.
void make_native(std::span<uint8_t> bytes, DType dtype, bool big_endian);

// Transposes an array from (H, W, C) to (C, H, W); `shape` is the latter. REQUIRES: three
// dimensions; `in` and `out` do not overlap.
void move_channels_first(const uint8_t* in, const Shape& shape, size_t element_bytes, uint8_t* out);

}  // namespace headrace
