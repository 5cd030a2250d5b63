// SPDX-License-Identifier: Apache-2.0
// Element types of tensors and batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headrace {

enum class DType : uint8_t {
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kBool,
};

size_t size_of(DType dtype);            // bytes of one element
std::string_view name_of(DType dtype);  // "uint8", as NumPy and torch name it
std::optional<DType> dtype_from_name(std::string_view name);
bool is_floating(DType dtype);

}  // namespace headrace
