// SPDX-License-Identifier: Apache-2.0
// Functions shared by the kinds whose values are bytes: dense numbers of any dtype, or a string.
#pragma once

#include "headrace/fields/begin.h"
#include "headrace/fields/kind.h"

namespace headrace {

// Whether values are the bytes of a file: encoded media, or the kind bytes.
inline bool is_stored_bytes(const Field& field) {
  return field.encoded || field.kind == FieldKind::kBytes;
}
// KindRecord::take for kinds of numbers: false unless the field's values are numeric arrays.
bool take_numbers(Field& field, FieldKind kind);

// Whether a record's shape matches that of the schema (-1 matches any size).
bool allows(const Shape& schema, const Shape& shape);
// HR0120: the size or shape differs from the schema.
Error wrong_value(const FieldState& state, const FieldData& data);

// KindRecord::begin for dense numbers, and for strings.
Result<void> begin_numbers(const BeginContext& from, FieldValue& value);
Result<void> begin_string(const BeginContext& from, FieldValue& value);

}  // namespace headrace
