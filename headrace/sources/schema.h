// SPDX-License-Identifier: Apache-2.0
// Records as a source delivers them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/fields/kind.h"

namespace headrace {

// One record as read. `owned` holds the memory that the fields' `bytes` point to, unless it belongs
// to the source.
struct RecordData {
  int64_t index = -1;
  std::vector<FieldData> fields;  // one per schema field; unwanted ones are empty
  std::vector<Buffer> owned;
  Buffer row_indexes;             // memory of the fields' row_index
  std::vector<RecordData> parts;  // more data that the source read: memory of some fields
  size_t max_bytes = SIZE_MAX;    // set by the caller: a larger file is a resource error
  // Set by the caller, per field number: whether the source may return an open file instead of
  // bytes. Null: for no field.
  const std::vector<bool>* by_range = nullptr;
  Result<void> result;

  // Visits all buffers that hold values, including those of `parts`.
  template <class Visit>
  void each_buffer(const Visit& visit) {
    for (Buffer& buffer : owned) visit(buffer);
    for (RecordData& part : parts) part.each_buffer(visit);
  }
  template <class Visit>
  void each_buffer(const Visit& visit) const {
    for (const Buffer& buffer : owned) visit(buffer);
    for (const RecordData& part : parts) part.each_buffer(visit);
  }
};

}  // namespace headrace
