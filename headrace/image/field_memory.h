// SPDX-License-Identifier: Apache-2.0
// Memory for the displacement fields of a thread's records, reused when no pending picture needs
// the field any more: touching fresh pages would cost a tenth of computing a field. Not
// thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "headrace/image/warp.h"

namespace headrace {

class FieldMemory {
 public:
  // An uninitialized field of this size. Shared with the pictures that will be warped by it.
  std::shared_ptr<WarpField> field_of(Size size) {
    const size_t count = size_t(size.height) * size_t(size.width) + kPadding;
    for (const std::shared_ptr<WarpField>& field : fields_) {
      if (field.use_count() > 1 || field->x.size() < count) continue;
      field->size = size;
      return field;
    }
    auto made = std::make_shared<WarpField>(WarpField{size, {}, {}});
    made->x.resize(count);
    made->y.resize(count);
    if (fields_.size() >= kMax)
      std::erase_if(fields_, [](const auto& field) { return field.use_count() == 1; });
    if (fields_.size() < kMax) fields_.push_back(made);
    return made;
  }
  // Memory for intermediate values of a field; the previous contents are lost.
  Buffer& numbers(size_t which) { return numbers_[which]; }

  size_t held_bytes() const {
    size_t bytes = numbers_[0].capacity() + numbers_[1].capacity();
    for (const auto& field : fields_) bytes += 2 * field->x.capacity() * sizeof(float);
    return bytes;
  }
  void free() {
    fields_.clear();
    for (Buffer& numbers : numbers_) numbers.free();
  }

 private:
  static constexpr size_t kMax =
      16;  // maximum number of fields: for records that are processed together
  static constexpr size_t kPadding = 16;  // numbers past the end that kernels may access
  std::vector<std::shared_ptr<WarpField>> fields_;
  Buffer numbers_[2];
};

}  // namespace headrace
