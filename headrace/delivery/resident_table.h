// SPDX-License-Identifier: Apache-2.0
// One field of a ResidentSet, and sizes in its memory. For the set's own files.
#pragma once

#include <memory>
#include <vector>

#include "headrace/delivery/resident_set.h"

namespace headrace {

constexpr size_t kLoadBytes = size_t{16} << 20;  // of a copy of data to the device

// The resize reads words.
constexpr size_t readable(size_t bytes) { return (bytes + 7) / 8 * 8; }

// Size of a piece in the staging memory.
constexpr size_t staged_size(size_t bytes) {
  constexpr size_t kAlignment = 64;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// A field where it lies.
struct ResidentSet::Table {
  ResidentField field;
  const uint8_t* values = nullptr;  // of the records that are resident
  uint8_t* streamed = nullptr;      // after them: the rows of a batch that are not
  // shared: views of the data use it, too. On a device alone.
  std::shared_ptr<DeviceLease> data;
  std::shared_ptr<DeviceRing> batches;
  size_t bytes = 0;
  const DeviceSteps::Output* edited = nullptr;
  std::shared_ptr<void> edits;     // on the device: of the batch that is made
  std::shared_ptr<void> elements;  // on the device: what each value of a byte becomes
  // Where pictures are resized before that: the batch's, as bytes; how; and the device's memory for
  // what the kernels are told and need.
  std::shared_ptr<void> resized;
  ResizePlan plan;
  std::shared_ptr<DeviceRing> work;

  // Where each record lies, of pictures that differ in size.
  std::vector<int64_t> offsets;

  const ResidentPicture* picture(int64_t record) const {
    return field.pictures ? &(*field.pictures)[size_t(record)] : nullptr;
  }
  size_t picture_bytes(int64_t record) const {
    const Size size = picture(record)->size;
    return size_t(edited->stored[0] * size.height * size.width);
  }
  size_t resized_bytes() const {  // of a row
    return resized ? field.record_bytes() / size_of(field.dtype) : 0;
  }
  // Size of a record where all are equal; record_bytes() has it as it is delivered.
  size_t row_bytes() const {
    if (field.pictures) return 0;
    return edited ? size_t(element_count(edited->stored)) : field.record_bytes();
  }
};

}  // namespace headrace
