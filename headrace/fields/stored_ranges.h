// SPDX-License-Identifier: Apache-2.0
// A stored value read by ranges, in whatever form its source returned it.
#pragma once

#include "headrace/fields/field.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// Ranges of the open file, or of the bytes, which stay the record's.
inline ByteRanges stored_ranges(const FieldData& value) {
  return value.file && value.bytes.empty() ? ByteRanges(value.file) : ByteRanges(value.bytes);
}

}  // namespace headrace
