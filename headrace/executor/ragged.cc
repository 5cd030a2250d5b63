// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/ragged.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "headrace/base/pages.h"
#include "headrace/executor/slots.h"

namespace headrace {
namespace {

// Axes as they lie in memory.
Shape as_stored(const Shape& shape, bool channels_last) {
  return channels_last && shape.size() == 3 ? Shape{shape[1], shape[2], shape[0]} : shape;
}

// One value into the corner of its place; both dense.
struct CornerCopy {
  CornerCopy(Shape from_shape, Shape to_shape, size_t element)
      : from(std::move(from_shape)), to(std::move(to_shape)), run(element) {
    axis = from.size();
    while (axis > 0 && (axis == from.size() || from[axis] == to[axis])) {
      run *= static_cast<size_t>(from[--axis]);
    }
    for (size_t a = 0; a < from.size(); ++a) {
      size_t bytes = element;
      for (size_t inner = a + 1; inner < to.size(); ++inner)
        bytes *= static_cast<size_t>(to[inner]);
      steps.push_back(bytes);
    }
  }

  // `source` moves on by what was read.
  void copy(const uint8_t*& source, uint8_t* target, size_t level = 0) const {
    if (level >= axis) {
      if (run > 0) std::memcpy(target, source, run);
      source += run;
      return;
    }
    for (int64_t i = 0; i < from[level]; ++i) {
      copy(source, target + static_cast<size_t>(i) * steps[level], level + 1);
    }
  }

  Shape from, to;
  size_t run;                 // bytes that lie together in both
  size_t axis;                // the outermost of these
  std::vector<size_t> steps;  // bytes of one index of each axis in the target
};

void fill(uint8_t* to, size_t bytes, std::span<const uint8_t> element) {
  const auto same = [&](uint8_t byte) { return byte == element.front(); };
  if (std::ranges::all_of(element, same)) {
    if (element.front() != 0 && bytes > 0) std::memset(to, element.front(), bytes);  // pages are 0
    return;
  }
  for (size_t at = 0; at < bytes; at += element.size()) {
    std::memcpy(to + at, element.data(), element.size());
  }
}

Assembled made(Shape shape, DType dtype) {
  const size_t bytes = tensor_bytes(shape, dtype);
  // One after the other: g++ 12 frees the members of an aggregate twice when a later one throws.
  Assembled out;
  out.memory = make_values(bytes);
  out.view = {out.memory.get(), dtype, std::move(shape), {}};
  if (bytes < kLargeBytes) std::memset(out.view.data, 0, bytes);  // else pages, which are
  return out;
}

}  // namespace

Shape padded_shape(const RaggedValues& values, int64_t multiple) {
  Shape out = values.promised;
  for (size_t axis = 0; axis < out.size(); ++axis) {
    if (out[axis] >= 0) continue;
    int64_t most = 0;
    for (const TensorView& item : values.items) most = std::max(most, item.shape[axis]);
    const int64_t over = most % multiple;
    out[axis] = over == 0 ? most : most + (multiple - over);
  }
  out.insert(out.begin(), static_cast<int64_t>(values.items.size()));
  return out;
}

Shape mask_shape(const RaggedValues& values, int64_t multiple) {
  const Shape whole = padded_shape(values, multiple);
  Shape shape = {whole.front()};
  for (size_t axis = 0; axis < values.promised.size(); ++axis) {
    if (values.promised[axis] < 0) shape.push_back(whole[axis + 1]);
  }
  return shape;
}

size_t tensor_bytes(const Shape& shape, DType dtype) {
  if (std::ranges::count(shape, 0) > 0) return 0;
  size_t bytes = size_of(dtype);
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(extent), &bytes)) return SIZE_MAX;
  }
  return bytes;
}

Assembled pad(const RaggedValues& values, int64_t multiple, std::span<const uint8_t> padding) {
  Assembled out = made(padded_shape(values, multiple), values.dtype);
  const Shape each(out.view.shape.begin() + 1, out.view.shape.end());
  const size_t bytes = tensor_bytes(each, values.dtype);
  auto* to = static_cast<uint8_t*>(out.view.data);
  fill(to, bytes * values.items.size(), padding);
  for (const TensorView& item : values.items) {
    const auto* from = static_cast<const uint8_t*>(item.data);
    if (item.elements() > 0) {
      CornerCopy(as_stored(item.shape, values.channels_last), as_stored(each, values.channels_last),
                 size_of(values.dtype))
          .copy(from, to);
    }
    to += bytes;
  }
  if (values.channels_last && each.size() == 3) {
    out.view.strides = {element_count(each), 1, each[2] * each[0], each[0]};
  }
  return out;
}

Assembled mask_of(const RaggedValues& values, int64_t multiple) {
  std::vector<size_t> open;
  for (size_t axis = 0; axis < values.promised.size(); ++axis) {
    if (values.promised[axis] < 0) open.push_back(axis);
  }
  Assembled out = made(mask_shape(values, multiple), DType::kBool);
  const Shape each(out.view.shape.begin() + 1, out.view.shape.end());
  auto* to = static_cast<uint8_t*>(out.view.data);
  for (const TensorView& item : values.items) {
    Shape own;
    for (const size_t axis : open) own.push_back(item.shape[axis]);
    const std::vector<uint8_t> ones(tensor_bytes(own, DType::kBool), 1);
    const uint8_t* from = ones.data();
    if (!ones.empty()) CornerCopy(own, each, 1).copy(from, to);
    to += tensor_bytes(each, DType::kBool);
  }
  return out;
}

Assembled pack(const RaggedValues& values) {
  Shape shape = values.promised;
  shape[0] = starts_of(values).back();
  Assembled out = made(std::move(shape), values.dtype);
  auto* to = static_cast<uint8_t*>(out.view.data);
  for (const TensorView& item : values.items) {
    const size_t bytes = item.dense_bytes();
    if (bytes > 0) std::memcpy(to, item.data, bytes);
    to += bytes;
  }
  return out;
}

std::vector<int64_t> starts_of(const RaggedValues& values) {
  std::vector<int64_t> starts = {0};
  for (const TensorView& item : values.items) starts.push_back(starts.back() + item.shape[0]);
  return starts;
}

Assembled tensor_of(std::span<const int64_t> numbers) {
  Assembled out = made({static_cast<int64_t>(numbers.size())}, DType::kInt64);
  std::memcpy(out.view.data, numbers.data(), numbers.size_bytes());
  return out;
}

}  // namespace headrace
