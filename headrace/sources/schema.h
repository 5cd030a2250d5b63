// SPDX-License-Identifier: Apache-2.0
// Fields, and records on their way from a source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/base/tensor.h"
#include "headrace/codecs/codec.h"

namespace headrace {

// What a field means to the steps. Packs store the numbers: new kinds go to the end.
enum class FieldKind : uint8_t {
  kImage,
  kMask,  // a picture of class ids, one channel
  kLabel,
  kTensor,
  kText,
  kBytes,
  // Tensors in the coordinates of the record's pictures: whoever moves these must move them too.
  kBoxes,      // (..., 4), or one coordinate of each box
  kKeypoints,  // (..., 2 or more)
  kMasks,      // (..., H, W): a plane an instance, a map of depth
};
inline constexpr int kFieldKinds = 9;
std::string_view name_of(FieldKind kind);

constexpr bool is_picture(FieldKind kind) {
  return kind == FieldKind::kImage || kind == FieldKind::kMask;
}
constexpr bool is_spatial(FieldKind kind) {
  return is_picture(kind) || kind == FieldKind::kBoxes || kind == FieldKind::kKeypoints ||
         kind == FieldKind::kMasks;
}

// One field of a source's records. Images and masks are encoded bytes, or (C, H, W) uint8 tensors.
struct Field {
  std::string name;
  FieldKind kind = FieldKind::kTensor;
  DType dtype = DType::kUInt8;
  Shape shape = {};      // of a record's value, without the batch; -1 where records differ;
                         // empty for a scalar, text and bytes
  bool encoded = false;  // an image or mask whose shape is known only after its header is read
};

using Schema = std::vector<Field>;

// What a source delivers for one field of one record.
struct FieldData {
  std::span<const uint8_t>
      bytes;           // encoded picture, UTF-8 text, bytes, or the tensor's dense elements
  Shape shape;         // of a tensor that the schema leaves open; else empty
  int64_t scalar = 0;  // where `bytes` is empty and the schema says int64 scalar
  RowIndexSlot row_index = {};  // of an encoded picture
};

// One record as read. `owned` keeps what `bytes` point to, where that is not the source's memory.
struct RecordData {
  int64_t index = -1;
  std::vector<FieldData> fields;  // as many as the schema has; unwanted ones stay empty
  std::vector<Buffer> owned;
  Buffer row_indexes;             // what the fields' row_index point to
  std::vector<RecordData> parts;  // what else a source needed to read: memory of some fields
  size_t max_bytes = SIZE_MAX;    // set by the reader: a file with more is a resource error
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
