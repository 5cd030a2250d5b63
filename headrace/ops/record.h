// SPDX-License-Identifier: Apache-2.0
// A record in flight: its fields as operators see and edit them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "headrace/image/recipe.h"
#include "headrace/sources/schema.h"

namespace headrace {

// The value of one field. A picture (image, mask) is a recipe; everything else is bytes of a dense
// tensor, text or raw bytes, borrowed from the source, or owned once something produced it.
struct FieldValue {
  FieldKind kind = FieldKind::kTensor;
  Recipe picture;                  // kImage, kMask
  std::span<const uint8_t> bytes;  // the other kinds
  Shape shape;                     // of `bytes` as a tensor, where the plan leaves it open
  int64_t scalar = 0;              // an int64 scalar (bytes empty)
  // shared: branches of a Fork may point to the same produced value.
  std::shared_ptr<const Buffer> owned;
};

struct Record {
  int64_t index = -1;              // in the source
  int64_t position = -1;           // in the epoch
  std::vector<FieldValue> fields;  // by the plan's field number
  // Memory for pictures that come as tensors, by field number; re-used from record to record.
  // shared: with the recipes that read them.
  std::vector<std::shared_ptr<Picture>> pixels;
  std::vector<Record> partners;  // for a partner step, as Op::partners() says
};

}  // namespace headrace
