// SPDX-License-Identifier: Apache-2.0
// One field of a ResidentSet, and sizes in its memory. Only for the files of ResidentSet.
#pragma once

#include <memory>
#include <vector>

#include "headrace/delivery/resident_set.h"

namespace headrace {

constexpr size_t kLoadBytes = size_t{16} << 20;  // copied to the device at a time

// Rounds up, because the resize reads words.
constexpr size_t readable(size_t bytes) { return (bytes + 7) / 8 * 8; }

// Size of a piece in the staging memory.
constexpr size_t staged_size(size_t bytes) {
  constexpr size_t kAlignment = 64;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// A field and its memory.
struct ResidentSet::Table {
  ResidentField field;
  const uint8_t* values = nullptr;  // of the records that are resident
  uint8_t* streamed = nullptr;      // after them: rows of the batch that are not resident
  // Only on a device. shared: with views of the data.
  std::shared_ptr<DeviceLease> data;
  std::shared_ptr<DeviceRing> batches;
  size_t bytes = 0;
  const DeviceSteps::Output* edited = nullptr;
  std::shared_ptr<void> edits;     // on the device: of the current batch
  std::shared_ptr<void> elements;  // on the device: the output value for each byte value
  // If pictures are resized before that: the batch's resized pictures, as bytes; the plan; and
  // device memory for the kernels' input and scratch data.
  std::shared_ptr<void> resized;
  ResizePlan plan;
  std::shared_ptr<DeviceRing> work;

  // Offset of each record, if pictures differ in size.
  std::vector<int64_t> offsets;

  const ResidentPicture* picture(int64_t record) const {
    return field.pictures ? &(*field.pictures)[size_t(record)] : nullptr;
  }
  size_t picture_bytes(int64_t record) const {
    const Size size = picture(record)->size;
    return size_t(edited->stored[0] * size.height * size.width);
  }
  size_t resized_bytes() const {  // per row
    return resized ? field.record_bytes() / size_of(field.dtype) : 0;
  }
  // Stored size of a record if all are equal; record_bytes() is the delivered size.
  size_t row_bytes() const {
    if (field.pictures) return 0;
    return edited ? size_t(element_count(edited->stored)) : field.record_bytes();
  }
};

}  // namespace headrace
