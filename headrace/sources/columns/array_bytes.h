// SPDX-License-Identifier: Apache-2.0
// Converts array elements from their byte order in a file to that of this machine.
// Thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/tensor.h"

namespace headrace {

// In place: the byte order, and bools that are neither 0 nor 1.
void make_native(std::span<uint8_t> bytes, DType dtype, bool big_endian);

// An array stored as (H, W, C) becomes (C, H, W), which `shape` is. REQUIRES:
// three dimensions, and no overlap.
void move_channels_first(const uint8_t* in, const Shape& shape, size_t element_bytes, uint8_t* out);

}  // namespace headrace
