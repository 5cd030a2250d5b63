// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/cached_record.h"

#include <cstring>

#include "headrace/sources/labeled_files.h"

namespace headrace {

Buffer cached_record_header(const RecordData& data, const FilesDigest& files, uint64_t writer) {
  size_t values = 0, sizes = 0;
  for (const FieldData& field : data.fields) {
    values += padded_value_bytes(field.bytes.size());
    sizes += field.shape.size();
  }
  size_t shape_at = sizeof(CachedRecord) + data.fields.size() * sizeof(CachedField);
  Buffer head;
  head.resize(padded_value_bytes(shape_at + sizes * sizeof(int64_t)));
  std::memset(head.data(), 0, head.size());
  const CachedRecord kept{.fields = data.fields.size(),
                          .bytes = head.size() + values + Buffer::kPadding,
                          .files = files,
                          .writer = writer};
  std::memcpy(head.data(), &kept, sizeof kept);
  size_t at = head.size();
  for (size_t i = 0; i < data.fields.size(); ++i) {
    const FieldData& field = data.fields[i];
    const CachedField about{.offset = at,
                            .bytes = field.bytes.size(),
                            .scalar = field.scalar,
                            .shape_offset = static_cast<uint32_t>(shape_at),
                            .rank = static_cast<uint32_t>(field.shape.size()),
                            .annotated_width = field.annotated_width,
                            .annotated_height = field.annotated_height};
    std::memcpy(head.data() + sizeof kept + i * sizeof about, &about, sizeof about);
    for (const int64_t size : field.shape) {
      std::memcpy(head.data() + shape_at, &size, sizeof size);
      shape_at += sizeof size;
    }
    at += padded_value_bytes(field.bytes.size());
  }
  return head;
}

const CachedRecord* cached_record(const uint8_t* memory, size_t bytes, size_t fields) {
  const size_t least = sizeof(CachedRecord) + fields * sizeof(CachedField);
  if (bytes < least) return nullptr;
  const auto* const kept = reinterpret_cast<const CachedRecord*>(memory);
  const bool fits = kept->fields == fields && kept->bytes >= least && kept->bytes <= bytes;
  return fits ? kept : nullptr;
}

bool read_cached(const CachedRecord& kept, int64_t record, RecordData& out) {
  const auto* const memory = reinterpret_cast<const uint8_t*>(&kept);
  const auto* const fields = reinterpret_cast<const CachedField*>(&kept + 1);
  const auto has = [&](uint64_t offset, uint64_t bytes) {
    return offset <= kept.bytes && bytes <= kept.bytes - offset;
  };
  begin_record(record, kept.fields, 0, out);
  for (size_t i = 0; i < kept.fields; ++i) {
    const CachedField& from = fields[i];
    if (!has(from.offset, from.bytes) || !has(from.offset + from.bytes, Buffer::kPadding) ||
        !has(from.shape_offset, from.rank * sizeof(int64_t))) {
      return false;
    }
    FieldData& field = out.fields[i];
    field.bytes = {memory + from.offset, from.bytes};
    field.scalar = from.scalar;
    field.annotated_width = from.annotated_width;
    field.annotated_height = from.annotated_height;
    field.shape.resize(from.rank);
    for (size_t axis = 0; axis < from.rank; ++axis) {
      std::memcpy(&field.shape[axis], memory + from.shape_offset + axis * sizeof(int64_t),
                  sizeof(int64_t));
    }
  }
  return true;
}

}  // namespace headrace
