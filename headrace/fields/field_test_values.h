// SPDX-License-Identifier: Apache-2.0
// For tests of kinds: makes values from numbers, and applies geometries to them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <type_traits>
#include <vector>

#include "headrace/fields/geometry.h"
#include "headrace/fields/kind.h"
#include "headrace/fields/record.h"
#include "headrace/image/render.h"

namespace headrace::field_test {

template <class Number>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<Number, float>) return DType::kFloat32;
  if constexpr (std::is_same_v<Number, double>) return DType::kFloat64;
  if constexpr (std::is_same_v<Number, int32_t>) return DType::kInt32;
  if constexpr (std::is_same_v<Number, int64_t>) return DType::kInt64;
  return DType::kUInt8;
}

template <class Number>
FieldValue value_of(FieldKind kind, const std::vector<Number>& numbers, Shape shape) {
  FieldValue value;
  value.kind = kind;
  value.dtype = dtype_of<Number>();
  value.shape = std::move(shape);
  Buffer bytes(numbers.size() * sizeof(Number));
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  value.own(std::move(bytes));
  return value;
}

template <class Number>
std::vector<Number> numbers_of(const FieldValue& value) {
  std::vector<Number> numbers(value.bytes.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), value.bytes.data(), value.bytes.size());
  return numbers;
}

inline Result<void> follow(FieldValue& value, const Geometry& geometry, Size canvas) {
  Renderer renderer;
  return record_of(value.kind).follow({geometry, canvas, renderer}, value);
}

}  // namespace headrace::field_test
