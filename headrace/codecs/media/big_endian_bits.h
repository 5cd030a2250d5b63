// SPDX-License-Identifier: Apache-2.0
// Reads bits of a stream's headers, the high bit of each byte first. After the last byte all bits
// are zero; see good().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace {

// Borrows the bytes.
class BigEndianBits {
 public:
  explicit BigEndianBits(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  // REQUIRES: at most 32.
  uint32_t take(int count) {
    uint32_t value = 0;
    for (; count > 0; --count, ++at_) {
      const bool is_there = at_ / 8 < bytes_.size();
      value = value << 1 | (is_there ? bytes_[at_ / 8] >> (7 - at_ % 8) & 1U : 0U);
    }
    return value;
  }
  void skip(size_t count) { at_ += count; }
  bool flag() { return take(1) != 0; }
  bool good() const { return at_ <= 8 * bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

}  // namespace headrace
