// SPDX-License-Identifier: Apache-2.0
#include "headrace/fields/numbers.h"

#include <algorithm>

#include "headrace/base/registry.h"

namespace headrace {
namespace {

const ErrorCode kWrongValue{
    "HR0120", ErrorKind::kData, "value does not match the schema",
    "A value has a different size or shape from the one in the source's schema: the file is "
    "damaged, or its records were written by different programs."};

void borrow(const FieldData& data, FieldValue& value) {
  value.bytes = data.bytes;
  value.scalar = data.scalar;
  value.shape.assign(data.shape.begin(), data.shape.end());
}

}  // namespace

bool take_numbers(Field& field, FieldKind kind) {
  if (is_stored_bytes(field) || is_string(field.kind)) return false;
  field.kind = kind;
  return true;
}

bool allows(const Shape& schema, const Shape& shape) {
  return std::ranges::equal(schema, shape, [](int64_t allowed, int64_t actual) {
    return actual >= 0 && (allowed < 0 || allowed == actual);
  });
}

Error wrong_value(const FieldState& state, const FieldData& data) {
  return {.code = &kWrongValue,
          .what = "\"" + state.name + "\" has " + std::to_string(data.bytes.size()) + " bytes" +
                  (data.shape.empty() ? "" : " as " + text_of(state.dtype, data.shape)) +
                  ", but the schema has " + text_of(state)};
}

Result<void> begin_numbers(const BeginContext& from, FieldValue& value) {
  const FieldState& state = from.state;
  const FieldData& data = from.data;
  borrow(data, value);
  value.dtype = state.dtype;
  if (value.shape.empty()) value.shape.assign(state.shape.begin(), state.shape.end());
  if (from.bytes == BeginContext::kOpen) {
    const bool fits = allows(state.shape, data.shape) &&
                      data.bytes.size() == size_t(element_count(data.shape)) * size_of(state.dtype);
    return fits ? Result<void>() : wrong_value(state, data);
  }
  const bool scalar = data.bytes.empty() && state.shape.empty() && state.dtype == DType::kInt64;
  return scalar || data.bytes.size() == from.bytes ? Result<void>() : wrong_value(state, data);
}

Result<void> begin_string(const BeginContext& from, FieldValue& value) {
  borrow(from.data, value);
  return {};
}

}  // namespace headrace
