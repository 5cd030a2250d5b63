// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/batch/ragged.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace headrace {
namespace {

std::vector<int64_t> dense_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

// Copies values of one shape; axes from the outermost in memory to the innermost.
struct StridedCopy {
  struct Axis {
    int64_t extent;
    size_t from, to;  // bytes from one index to the next
  };
  std::vector<Axis> axes;
  size_t run;  // bytes that are contiguous in both

  // Merges axes that are contiguous in both into the run.
  void join() {
    while (!axes.empty() &&
           (axes.back().extent == 1 || (axes.back().from == run && axes.back().to == run))) {
      run *= static_cast<size_t>(axes.back().extent);
      axes.pop_back();
    }
  }
  void copy(const uint8_t* from, uint8_t* to, size_t level = 0) const {
    if (level == axes.size()) {
      std::memcpy(to, from, run);
      return;
    }
    const Axis& axis = axes[level];
    for (int64_t i = 0; i < axis.extent; ++i, from += axis.from, to += axis.to) {
      copy(from, to, level + 1);
    }
  }
};

bool all_same(std::span<const uint8_t> bytes) {
  return std::ranges::all_of(bytes, [&](uint8_t byte) { return byte == bytes.front(); });
}

void repeat(std::span<const uint8_t> element, uint8_t* to, size_t bytes) {
  if (bytes == 0) return;
  if (element.empty() || all_same(element)) {
    std::memset(to, element.empty() ? 0 : element.front(), bytes);
    return;
  }
  for (size_t at = 0; at < bytes; at += element.size()) {
    std::memcpy(to + at, element.data(), element.size());
  }
}

// Dense memory with a value in its first corner; axes from the outermost to the innermost.
struct Margins {
  struct Axis {
    int64_t extent, value;
    size_t bytes;  // from one index to the next
  };
  std::vector<Axis> axes;
  std::span<const uint8_t> element;

  // Clears everything except the value.
  void fill(uint8_t* to, size_t level = 0) const {
    const auto is_full = [](const Axis& axis) { return axis.value == axis.extent; };
    if (std::all_of(axes.begin() + std::ptrdiff_t(level), axes.end(), is_full)) return;
    const Axis& axis = axes[level];
    for (int64_t i = 0; i < axis.value; ++i) fill(to + size_t(i) * axis.bytes, level + 1);
    repeat(element, to + size_t(axis.value) * axis.bytes,
           size_t(axis.extent - axis.value) * axis.bytes);
  }
};

Assembled made(Shape shape, DType dtype, const TensorMemory& memory) {
  // Initialized separately: g++ 12 frees the members of an aggregate twice if a later one throws.
  Assembled out;
  out.memory = memory(tensor_bytes(shape, dtype));
  out.view = {out.memory.get(), dtype, std::move(shape), {}};
  return out;
}

int64_t rounded_up(int64_t extent, int64_t multiple) {
  const int64_t over = extent % multiple;
  return over == 0 ? extent : extent + (multiple - over);
}

}  // namespace

size_t tensor_bytes(const Shape& shape, DType dtype) {
  if (std::ranges::count(shape, 0) > 0) return 0;
  size_t bytes = size_of(dtype);
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(extent), &bytes)) return SIZE_MAX;
  }
  return bytes;
}

RaggedLayout::RaggedLayout(const RaggedForm& form, std::span<const TensorView> items)
    : form_(form), shape_(form.promised) {
  if (form_.packed) {
    open_ = static_cast<size_t>(std::ranges::find(shape_, -1) - shape_.begin());
    starts_ = {0};
    for (const TensorView& item : items) starts_.push_back(starts_.back() + item.shape[open_]);
    shape_[open_] = starts_.back();
    strides_ = dense_strides(shape_);
    return;
  }
  for (size_t axis = 0; axis < shape_.size(); ++axis) {
    if (shape_[axis] >= 0) continue;
    int64_t most = 0;
    for (const TensorView& item : items) most = std::max(most, item.shape[axis]);
    shape_[axis] = rounded_up(most, form_.multiple);
  }
  shape_.insert(shape_.begin(), static_cast<int64_t>(items.size()));
  strides_ = dense_strides(shape_);
  if (form_.channels_last && shape_.size() == 4) {
    strides_ = {strides_[0], 1, shape_[3] * shape_[1], shape_[1]};
  }
}

Shape RaggedLayout::mask_shape() const {
  Shape shape = {shape_.front()};
  for (size_t axis = 0; axis < form_.promised.size(); ++axis) {
    if (form_.promised[axis] < 0) shape.push_back(shape_[axis + 1]);
  }
  return shape;
}

size_t RaggedLayout::bytes() const { return tensor_bytes(shape_, form_.dtype); }

Assembled RaggedLayout::make(const TensorMemory& memory) const {
  Assembled out = made(shape_, form_.dtype, memory);
  if (form_.channels_last && shape_.size() == 4) out.view.strides = strides_;
  return out;
}

TensorView RaggedLayout::place(void* memory, size_t row, Shape shape) const {
  const int64_t elements =
      form_.packed ? starts_[row] * strides_[open_] : static_cast<int64_t>(row) * strides_[0];
  return {static_cast<uint8_t*>(memory) + static_cast<size_t>(elements) * size_of(form_.dtype),
          form_.dtype,
          std::move(shape),
          {strides_.begin() + !form_.packed, strides_.end()}};
}

void RaggedLayout::fill(void* memory, size_t row, const Shape& value) const {
  if (form_.packed) return;
  Margins margins{{}, form_.padding};
  for (size_t axis = 0; axis < value.size(); ++axis) {
    margins.axes.push_back({shape_[axis + 1], value[axis],
                            static_cast<size_t>(strides_[axis + 1]) * size_of(form_.dtype)});
  }
  if (form_.channels_last && margins.axes.size() == 3)
    std::ranges::rotate(margins.axes, margins.axes.begin() + 1);
  const size_t bytes = static_cast<size_t>(strides_[0]) * size_of(form_.dtype);
  margins.fill(static_cast<uint8_t*>(memory) + row * bytes);
}

void RaggedLayout::copy(const TensorView& from, const TensorView& to) const {
  if (from.elements() == 0) return;
  const size_t element = size_of(form_.dtype);
  const std::vector<int64_t> steps =
      from.strides.empty() ? dense_strides(from.shape) : from.strides;
  StridedCopy copy{{}, element};
  for (size_t axis = 0; axis < from.shape.size(); ++axis) {
    copy.axes.push_back({from.shape[axis], static_cast<size_t>(steps[axis]) * element,
                         static_cast<size_t>(to.strides[axis]) * element});
  }
  if (form_.channels_last && copy.axes.size() == 3)
    std::ranges::rotate(copy.axes, copy.axes.begin() + 1);
  copy.join();
  copy.copy(static_cast<const uint8_t*>(from.data), static_cast<uint8_t*>(to.data));
}

Assembled assemble(const RaggedForm& form, std::span<const TensorView> items,
                   const TensorMemory& memory) {
  const RaggedLayout layout(form, items);
  Assembled out = layout.make(memory);
  for (size_t row = 0; row < items.size(); ++row) {
    layout.fill(out.view.data, row, items[row].shape);
    layout.copy(items[row], layout.place(out.view.data, row, items[row].shape));
  }
  return out;
}

Assembled mask_of(const RaggedForm& form, std::span<const TensorView> items,
                  const TensorMemory& memory) {
  RaggedForm of_mask{.dtype = DType::kBool, .promised = {}, .multiple = form.multiple};
  std::vector<TensorView> ones;
  std::vector<uint8_t> one(1, 1);
  for (const int64_t extent : form.promised) {
    if (extent < 0) of_mask.promised.push_back(-1);
  }
  for (const TensorView& item : items) {
    TensorView own{one.data(), DType::kBool, {}, {}};
    for (size_t axis = 0; axis < form.promised.size(); ++axis) {
      if (form.promised[axis] < 0) own.shape.push_back(item.shape[axis]);
    }
    const auto count = static_cast<size_t>(std::max<int64_t>(own.shape.back(), 0));
    if (count > one.size()) one.assign(count, 1);
    own.strides.assign(own.shape.size(), 0);  // every row consists of the same ones
    own.strides.back() = 1;
    ones.push_back(std::move(own));
  }
  for (TensorView& each : ones) each.data = one.data();
  return assemble(of_mask, ones, memory);
}

Assembled tensor_of(std::span<const int64_t> numbers, const TensorMemory& memory) {
  Assembled out = made({static_cast<int64_t>(numbers.size())}, DType::kInt64, memory);
  std::memcpy(out.view.data, numbers.data(), numbers.size_bytes());
  return out;
}

}  // namespace headrace
