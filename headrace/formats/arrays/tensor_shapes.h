// SPDX-License-Identifier: Apache-2.0
// Checks tensor sizes stated in a file: whether they are valid, and whether they match.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "headrace/base/tensor.h"

namespace headrace {

// Computes the product of sizes stated in a file. False if one is negative or the product is above
// `most`.
bool product_of(std::span<const int64_t> sizes, uint64_t most, uint64_t& out);
// Sets dimensions of `merged` to -1 where `shape` differs. False if the numbers of dimensions
// differ.
bool merge_shapes(const Shape& shape, Shape& merged);
bool fits_shape(const Shape& shape, const Shape& declared);
std::string sizes_text(std::span<const int64_t> sizes);  // "3 x 32 x 32"

}  // namespace headrace
