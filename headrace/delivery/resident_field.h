// SPDX-License-Identifier: Apache-2.0
// A field of records that stay in memory, as used by the sets that slice batches from records.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/executor/batch/batch.h"
#include "headrace/image/picture.h"
#include "headrace/pipeline/plan.h"

namespace headrace {

// A picture that stays in memory, of a field whose pictures differ in size.
struct ResidentPicture {
  const uint8_t* values = nullptr;  // (C, H, W) bytes on the host, as long as they stay there
  Size size;
};
// By record. shared: by the holder of a field, and by the steps on it.
using ResidentPictures = std::shared_ptr<const std::vector<ResidentPicture>>;

// One field of all records. `id` and `valid` have no values: they are made for each batch.
struct ResidentField {
  std::string name;
  OutputOrigin origin = OutputOrigin::kField;
  DType dtype = DType::kUInt8;
  Shape shape = {};                   // of one record
  std::vector<int64_t> strides = {};  // of one record, in elements; empty: dense
  const uint8_t* values = nullptr;    // on the host
  ResidentPictures pictures = {};     // instead of shape, strides and values, if the pictures
                                      // differ in size
  int edited = -1;                    // pictures that steps change: index in the steps' outputs
  // shared: with views, and on the host with the set, which does not copy the values.
  std::shared_ptr<const void> owner = {};

  bool has_values() const { return origin == OutputOrigin::kField; }
  // Size of a record as delivered.
  size_t record_bytes() const { return size_t(element_count(shape)) * size_of(dtype); }
  // The field of a batch with this many rows, without memory.
  BatchField batch_field(int64_t rows) const {
    BatchField out;
    out.name = name;
    out.view = {nullptr, dtype, {rows}, {}};
    out.view.shape.insert(out.view.shape.end(), shape.begin(), shape.end());
    if (strides.empty()) return out;
    out.view.strides = {element_count(shape)};
    out.view.strides.insert(out.view.strides.end(), strides.begin(), strides.end());
    return out;
  }
};

struct ResidentStats {
  size_t data_bytes = 0;   // on the device; on the host, of memory that it refers to
  size_t batch_bytes = 0;  // of the rings
  int64_t beyond = 0;      // batches outside of the rings, because the consumer keeps many
};

}  // namespace headrace
