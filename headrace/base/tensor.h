// SPDX-License-Identifier: Apache-2.0
// Shapes, and views of memory that the caller owns.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/dtype.h"

namespace headrace {

using Shape = std::vector<int64_t>;  // elements; -1: unknown, in a schema or a plan

inline int64_t element_count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// A tensor in memory that the caller owns; strides in elements, empty for dense row-major.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kUInt8;
  Shape shape;
  std::vector<int64_t> strides;
  int64_t elements() const { return element_count(shape); }
  size_t dense_bytes() const { return static_cast<size_t>(elements()) * size_of(dtype); }
};

// --- Sizes stated in a file: whether they are valid, and whether they match ---

// Computes the product of sizes stated in a file. False if one is negative or the product is above
// `most`.
bool product_of(std::span<const int64_t> sizes, uint64_t most, uint64_t& out);
// Sets dimensions of `merged` to -1 where `shape` differs. False if the numbers of dimensions
// differ.
bool merge_shapes(const Shape& shape, Shape& merged);
bool fits_shape(const Shape& shape, const Shape& declared);
std::string sizes_text(std::span<const int64_t> sizes);  // "3 x 32 x 32"

}  // namespace headrace
