// SPDX-License-Identifier: Apache-2.0
// The form of a record in a cache: one piece of memory that begins with a KeptRecord; then for each
// field a KeptField, the shapes, and the values' bytes, each field's at a multiple of 64, with 64
// readable bytes after the last, which decoders may touch. Offsets are the record's.
//
// Stateless; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/base/buffer.h"
#include "headrace/sources/schema.h"

namespace headrace {

struct KeptField {
  uint64_t offset = 0, bytes = 0;
  int64_t scalar = 0;
  uint32_t shape_offset = 0, rank = 0;  // sizes as int64
  int32_t annotated_width = 0, annotated_height = 0;
};

// The files that a record was read from, as they were then.
struct FilesDigest {
  uint64_t value = 0;
  uint64_t is_known = 1;  // 0: a file has no version that other processes could compare
  bool operator==(const FilesDigest&) const = default;
};

struct KeptRecord {
  uint64_t fields = 0;
  uint64_t bytes = 0;  // of all of it
  FilesDigest files = {};
  uint64_t keeper = 0;  // the cache object that wrote it
};

// Where a value of so many bytes ends, with the gap before the next one.
constexpr size_t kept_bytes(size_t bytes) {
  return (bytes + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment;
}

// The part before the values.
Buffer head_of_kept(const RecordData& data, const FilesDigest& files, uint64_t keeper);
// Null unless a record with so many fields may lie in this memory: none of its own offsets has been
// checked yet.
const KeptRecord* kept_record(const uint8_t* memory, size_t bytes, size_t fields);
// Points `out` to the values. False where they are not all inside the record.
bool read_kept(const KeptRecord& kept, int64_t record, RecordData& out);

}  // namespace headrace
