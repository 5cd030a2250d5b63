// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/dtype.h"

namespace headrace {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
  size_t bytes;
};

constexpr Entry kEntries[] = {
    {DType::kUInt8, "uint8", 1},     {DType::kInt8, "int8", 1},
    {DType::kInt16, "int16", 2},     {DType::kInt32, "int32", 4},
    {DType::kInt64, "int64", 8},     {DType::kUInt16, "uint16", 2},
    {DType::kUInt32, "uint32", 4},   {DType::kUInt64, "uint64", 8},
    {DType::kFloat16, "float16", 2}, {DType::kBFloat16, "bfloat16", 2},
    {DType::kFloat32, "float32", 4}, {DType::kFloat64, "float64", 8},
    {DType::kBool, "bool", 1},
};

}  // namespace

size_t size_of(DType dtype) { return kEntries[static_cast<int>(dtype)].bytes; }

std::string_view name_of(DType dtype) { return kEntries[static_cast<int>(dtype)].name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

bool is_floating(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

}  // namespace headrace
