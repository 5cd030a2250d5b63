// SPDX-License-Identifier: Apache-2.0
// Bytes in memory as a stream, for libraries that ask for one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

namespace headrace {

class BytesReader {
 public:
  explicit BytesReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  size_t read(void* to, size_t count) {
    count = std::min(count, bytes_.size() - at_);
    if (count > 0) std::memcpy(to, bytes_.data() + at_, count);
    at_ += count;
    return count;
  }
  // As fseek() has it; false for a place that is none.
  bool seek(int64_t offset, int whence) {
    const auto size = static_cast<int64_t>(bytes_.size());
    const int64_t base = whence == SEEK_SET   ? 0
                         : whence == SEEK_CUR ? static_cast<int64_t>(at_)
                                              : size;
    int64_t to = 0;
    if (__builtin_add_overflow(base, offset, &to) || to < 0 || to > size) return false;
    at_ = static_cast<size_t>(to);
    return true;
  }
  size_t at() const { return at_; }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

}  // namespace headrace
