// SPDX-License-Identifier: Apache-2.0
// Reads big-endian numbers, one by one, from untrusted bytes: once the bytes run out, all further
// numbers are 0, so a parser only has to call good() once, before it uses any of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace {

// Borrows the bytes.
class BigEndianReader {
 public:
  explicit BigEndianReader(std::span<const uint8_t> bytes) : rest_(bytes) {}
  bool good() const { return good_; }
  std::span<const uint8_t> rest() const { return rest_; }
  std::span<const uint8_t> bytes(uint64_t count) {
    if (count > rest_.size()) good_ = false;
    if (!good_) {
      rest_ = {};
      return {};
    }
    const std::span<const uint8_t> out = rest_.first(count);
    rest_ = rest_.subspan(count);
    return out;
  }
  void skip(uint64_t count) { bytes(count); }
  // REQUIRES: at most 8.
  uint64_t number(int count) {
    uint64_t value = 0;
    for (const uint8_t byte : bytes(static_cast<uint64_t>(count))) value = value << 8 | byte;
    return value;
  }
  uint8_t u8() { return static_cast<uint8_t>(number(1)); }
  uint16_t u16() { return static_cast<uint16_t>(number(2)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t u64() { return number(8); }
  int32_t i32() { return static_cast<int32_t>(u32()); }
  int64_t i64() { return static_cast<int64_t>(u64()); }

 private:
  std::span<const uint8_t> rest_;
  bool good_ = true;
};

// Reads bits of a stream's headers, the high bit of each byte first. After the last byte all bits
// are zero; see good().

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
