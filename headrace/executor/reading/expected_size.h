// SPDX-License-Identifier: Apache-2.0
// Upper estimate of the next record's size from recent sizes, outliers ignored. A single giant does
// not count, or a thousand small records after it would wait for memory that they do not need. Not
// thread-safe; the owner's mutex protects it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>

namespace headrace {

class ExpectedSize {
 public:
  void add(size_t bytes) {
    sizes_[seen_++ % kKept] = std::max<size_t>(bytes, 1);
    if (seen_ < kFew || seen_ % 8 == 0) expected_ = among(std::min(seen_, kKept));
  }
  // 0 before the first.
  size_t bytes() const { return expected_; }

 private:
  static constexpr size_t kKept = 64, kFew = 16;

  size_t among(size_t count) const {
    std::array<size_t, kKept> sorted = sizes_;
    const size_t giants = count < 4 ? 0 : 1 + count / 32;
    const auto place = sorted.begin() + static_cast<std::ptrdiff_t>(giants);
    std::nth_element(sorted.begin(), place, sorted.begin() + static_cast<std::ptrdiff_t>(count),
                     std::greater<>());
    return *place;
  }

  std::array<size_t, kKept> sizes_{};
  size_t seen_ = 0, expected_ = 0;
};

}  // namespace headrace
