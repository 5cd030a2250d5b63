// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/tensor.h"

#include <algorithm>

namespace headrace {

bool product_of(std::span<const int64_t> sizes, uint64_t most, uint64_t& out) {
  out = 1;
  for (const int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(out, static_cast<uint64_t>(size), &out)) return false;
  }
  return out <= most;
}

bool merge_shapes(const Shape& shape, Shape& merged) {
  if (shape.size() != merged.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != merged[i]) merged[i] = -1;
  }
  return true;
}

bool fits_shape(const Shape& shape, const Shape& declared) {
  return std::ranges::equal(shape, declared, [](int64_t a, int64_t b) { return b < 0 || a == b; });
}

std::string sizes_text(std::span<const int64_t> sizes) {
  std::string out;
  for (const int64_t size : sizes) {
    out += (out.empty() ? "" : " x ") + (size < 0 ? std::string("?") : std::to_string(size));
  }
  return out.empty() ? "one number" : out;
}

}  // namespace headrace
