// SPDX-License-Identifier: Apache-2.0
// Random access to a stored value, in whichever form its source returned it.
#pragma once

#include "headrace/fields/field.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// Reads from the open file, or from the bytes, which the record owns.
inline ByteRanges byte_ranges_of(const FieldData& value) {
  return value.file && value.bytes.empty() ? ByteRanges(value.file) : ByteRanges(value.bytes);
}

}  // namespace headrace
