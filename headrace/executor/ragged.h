// SPDX-License-Identifier: Apache-2.0
// Values of differing shape as one tensor: padded to the longest, or row after row.
//
// Plain functions over the values of one full batch; memory is theirs to make, and the caller's to
// bound by what assembled_bytes() says before.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "headrace/base/tensor.h"

namespace headrace {

// The values of one field, by row; `promised` is the plan's shape, -1 on open axes.
struct RaggedValues {
  std::span<const TensorView> items;
  DType dtype = DType::kUInt8;
  Shape promised;
  bool channels_last = false;  // pictures, whose memory is (H, W, C)
};

struct Assembled {
  TensorView view;
  std::shared_ptr<void> memory;  // shared: views of a field outlive its batch
};

// (rows, ...): the largest extent on each open axis, rounded up to a multiple.
Shape padded_shape(const RaggedValues& values, int64_t multiple);
// (rows, one axis for each open one), likewise.
Shape mask_shape(const RaggedValues& values, int64_t multiple);
// Of a tensor; SIZE_MAX where that is more than a size_t counts.
size_t tensor_bytes(const Shape& shape, DType dtype);

// `padding`: the bytes of one element.
Assembled pad(const RaggedValues& values, int64_t multiple, std::span<const uint8_t> padding);
// bool: whether a value is a record's own.
Assembled mask_of(const RaggedValues& values, int64_t multiple);

// (all rows of all records, ...). REQUIRES: the first axis alone is open.
Assembled pack(const RaggedValues& values);
// int64 (rows + 1): where each record's rows begin, and where the last one's end.
std::vector<int64_t> starts_of(const RaggedValues& values);
Assembled tensor_of(std::span<const int64_t> numbers);

}  // namespace headrace
