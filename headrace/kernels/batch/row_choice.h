// SPDX-License-Identifier: Apache-2.0
// Which row of a set becomes each row of a batch. Passed by value as part of kernels.
#pragma once

#include <cstdint>

#include "headrace/base/host_device_function.h"
#include "headrace/base/permutation.h"

namespace headrace {

class RowChoice {
 public:
  // Rows first, first + 1, ...
  static RowChoice slice(int64_t first) { return RowChoice(Kind::kSlice, nullptr, {1, 0}, first); }
  // Row indices[i], read from the memory of the device that runs the kernel. REQUIRES: each is a
  // valid row; a kernel cannot report an invalid one.
  static RowChoice indices(const int64_t* indices) {
    return RowChoice(Kind::kIndices, indices, {1, 0}, 0);
  }
  // Row order(first + i): positions first, first + 1, ... of a shuffled epoch, without a table.
  // REQUIRES: 0 <= first, and all requested positions are below the permutation's size.
  static RowChoice shuffled(const Permutation& order, int64_t first) {
    return RowChoice(Kind::kShuffled, nullptr, order, first);
  }

  HEADRACE_HD int64_t operator()(int64_t i) const {
    switch (kind_) {
      case Kind::kIndices:
        return indices_[i];
      case Kind::kShuffled:
        return order_(first_ + i);
      default:
        return first_ + i;
    }
  }

 private:
  enum class Kind : uint8_t { kSlice, kIndices, kShuffled };
  RowChoice(Kind kind, const int64_t* indices, const Permutation& order, int64_t first)
      : kind_(kind), indices_(indices), order_(order), first_(first) {}

  Kind kind_;
  const int64_t* indices_;
  Permutation order_;
  int64_t first_;
};

}  // namespace headrace
