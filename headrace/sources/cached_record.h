// SPDX-License-Identifier: Apache-2.0
// The layout of a record in a cache, one contiguous block: a CachedRecord, a CachedField per field,
// the shapes, and the bytes of the values. Each value begins at a multiple of 64; 64 readable bytes
// follow the last, since decoders may read past the end. Offsets are relative to the record.
//
// Stateless and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/base/buffer.h"
#include "headrace/sources/schema.h"

namespace headrace {

struct CachedField {
  uint64_t offset = 0, bytes = 0;
  int64_t scalar = 0;
  uint32_t shape_offset = 0, rank = 0;  // sizes as int64
  int32_t annotated_width = 0, annotated_height = 0;
};

// The status of the files that a record was read from, at that time.
struct FilesDigest {
  uint64_t value = 0;
  uint64_t is_known = 1;  // 0: a file without a version that other processes can compare
  bool operator==(const FilesDigest&) const = default;
};

struct CachedRecord {
  uint64_t fields = 0;
  uint64_t bytes = 0;  // of the whole block
  FilesDigest files = {};
  uint64_t writer = 0;  // the cache object that wrote it
};

// The size of a value of `bytes` bytes, including the gap before the next one.
constexpr size_t padded_value_bytes(size_t bytes) {
  return (bytes + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment;
}

// Everything before the values.
Buffer cached_record_header(const RecordData& data, const FilesDigest& files, uint64_t writer);
// Null unless this memory may hold a record with this many fields. Its offsets are not checked yet.
const CachedRecord* cached_record(const uint8_t* memory, size_t bytes, size_t fields);
// Points `out` to the values. False if they are not all within the record.
bool read_cached(const CachedRecord& kept, int64_t record, RecordData& out);

}  // namespace headrace
