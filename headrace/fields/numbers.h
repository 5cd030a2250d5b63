// SPDX-License-Identifier: Apache-2.0
// Shared by the kinds whose values are bytes: dense numbers of any dtype, or a string.
#pragma once

#include "headrace/fields/begin.h"
#include "headrace/fields/kind.h"

namespace headrace {

// Whether values are bytes of a file, one way or another: what only a picture or bytes can be.
inline bool is_stored_bytes(const Field& field) {
  return field.encoded || field.kind == FieldKind::kBytes;
}
// Makes the field one of this kind, where its values are numbers of an array.
bool take_numbers(Field& field, FieldKind kind);

// Whether a record's shape is one that the schema's allows.
bool allows(const Shape& schema, const Shape& shape);
// HR0120: another size or shape than the schema says.
Error wrong_value(const FieldState& state, const FieldData& data);

// KindRecord::begin of dense numbers, and of strings.
Result<void> begin_numbers(const Beginning& from, FieldValue& value);
Result<void> begin_string(const Beginning& from, FieldValue& value);

}  // namespace headrace
