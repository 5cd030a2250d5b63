// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/kept_record.h"

#include <cstring>

#include "headrace/sources/labeled_files.h"

namespace headrace {

Buffer head_of_kept(const RecordData& data, const FilesDigest& files, uint64_t keeper) {
  size_t values = 0, sizes = 0;
  for (const FieldData& field : data.fields) {
    values += kept_bytes(field.bytes.size());
    sizes += field.shape.size();
  }
  size_t shape_at = sizeof(KeptRecord) + data.fields.size() * sizeof(KeptField);
  Buffer head;
  head.resize(kept_bytes(shape_at + sizes * sizeof(int64_t)));
  std::memset(head.data(), 0, head.size());
  const KeptRecord kept{.fields = data.fields.size(),
                        .bytes = head.size() + values + Buffer::kPadding,
                        .files = files,
                        .keeper = keeper};
  std::memcpy(head.data(), &kept, sizeof kept);
  size_t at = head.size();
  for (size_t i = 0; i < data.fields.size(); ++i) {
    const FieldData& field = data.fields[i];
    const KeptField about{.offset = at,
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
    at += kept_bytes(field.bytes.size());
  }
  return head;
}

const KeptRecord* kept_record(const uint8_t* memory, size_t bytes, size_t fields) {
  const size_t least = sizeof(KeptRecord) + fields * sizeof(KeptField);
  if (bytes < least) return nullptr;
  const auto* const kept = reinterpret_cast<const KeptRecord*>(memory);
  const bool fits = kept->fields == fields && kept->bytes >= least && kept->bytes <= bytes;
  return fits ? kept : nullptr;
}

bool read_kept(const KeptRecord& kept, int64_t record, RecordData& out) {
  const auto* const memory = reinterpret_cast<const uint8_t*>(&kept);
  const auto* const fields = reinterpret_cast<const KeptField*>(&kept + 1);
  const auto has = [&](uint64_t offset, uint64_t bytes) {
    return offset <= kept.bytes && bytes <= kept.bytes - offset;
  };
  begin_record(record, kept.fields, 0, out);
  for (size_t i = 0; i < kept.fields; ++i) {
    const KeptField& from = fields[i];
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
