// SPDX-License-Identifier: Apache-2.0
// Records on their way from a source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/fields/kind.h"

namespace headrace {

// One record as read. `owned` keeps what `bytes` point to, where that is not the source's memory.
struct RecordData {
  int64_t index = -1;
  std::vector<FieldData> fields;  // as many as the schema has; unwanted ones stay empty
  std::vector<Buffer> owned;
  Buffer row_indexes;             // memory of the fields' row_index
  std::vector<RecordData> parts;  // other data that the source read: memory of some fields
  size_t max_bytes = SIZE_MAX;    // set by the reader: a file with more is a resource error
  // Set by the reader, by number of the field: those of which a source may give the open file in
  // place of bytes. Null: of none.
  const std::vector<bool>* by_range = nullptr;
  Result<void> result;

  // Visits all buffers that values lie in, of its parts too.
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
