// SPDX-License-Identifier: Apache-2.0
// Values of differing shape as one tensor: padded to the longest, or concatenated.
//
// Plain functions over the values of one batch; they allocate memory, which the caller bounds in
// advance by RaggedLayout::bytes().
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "headrace/base/tensor.h"

namespace headrace {

// How the values of one field become one tensor; `promised` is the plan's shape, -1 on open axes.
struct RaggedForm {
  DType dtype = DType::kUInt8;
  Shape promised;
  bool packed = false;             // otherwise padded
  int64_t multiple = 1;            // padded: extents are rounded up to a multiple of it
  std::vector<uint8_t> padding{};  // padded: the bytes of one element; empty: zeros
  bool channels_last = false;      // for pictures stored as (H, W, C)
};

struct Assembled {
  TensorView view;
  std::shared_ptr<void> memory;  // shared: views of a field outlive its batch
};

// Allocates memory; contents unspecified.
using TensorMemory = std::function<std::shared_ptr<void>(size_t bytes)>;

// The position of each value in the tensor, determined by their shapes alone.
class RaggedLayout {
 public:
  // `items`: the values by row, whose memory need not exist yet. REQUIRES: shapes as promised; if
  // rows are packed, one axis is open.
  RaggedLayout(const RaggedForm& form, std::span<const TensorView> items);

  // Padded: (rows, ...), the largest extent on each open axis, rounded up. Packed: (all rows of all
  // records, ...).
  const Shape& shape() const { return shape_; }
  // For a padded tensor: (rows, one axis per open axis).
  Shape mask_shape() const;
  size_t bytes() const;  // SIZE_MAX if it does not fit into a size_t
  // Packed: where each record's rows begin, and where the rows of the last record end.
  const std::vector<int64_t>& starts() const { return starts_; }

  // Allocates the tensor, contents unspecified: fill() and copy() write each byte.
  Assembled make(const TensorMemory& memory) const;
  // A view of the position of a row's value in such memory, for a value of that shape.
  TensorView place(void* memory, size_t row, Shape shape) const;
  // The row's padding around a value of that shape.
  void fill(void* memory, size_t row, const Shape& value) const;
  // Copies a value to its position; both may be strided.
  void copy(const TensorView& from, const TensorView& to) const;

 private:
  RaggedForm form_;
  Shape shape_;
  std::vector<int64_t> strides_;  // elements
  std::vector<int64_t> starts_;
  size_t open_ = 0;  // packed: the axis
};

// Size of a tensor; SIZE_MAX if it does not fit into a size_t.
size_t tensor_bytes(const Shape& shape, DType dtype);

Assembled assemble(const RaggedForm& form, std::span<const TensorView> items,
                   const TensorMemory& memory);
// A bool mask: true for elements of a record, false for padding.
Assembled mask_of(const RaggedForm& form, std::span<const TensorView> items,
                  const TensorMemory& memory);
Assembled tensor_of(std::span<const int64_t> numbers, const TensorMemory& memory);

}  // namespace headrace
