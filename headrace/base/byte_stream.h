// SPDX-License-Identifier: Apache-2.0
// Reads and writes sequences of numbers and strings, little-endian and unaligned, as in Headrace's
// own file formats and most others.
//
// The reader checks bounds and is safe on untrusted bytes: once the bytes run out, every further
// value is zero or empty, so a parser calls good() once, before it uses a number.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"

namespace headrace {

static_assert(std::endian::native == std::endian::little, "numbers are copied in memory order");

// The bytes of numbers in memory: of an array, a vector or a span.
template <class Numbers>
std::span<const uint8_t> raw_bytes(const Numbers& numbers) {
  const std::span all(numbers);
  return {reinterpret_cast<const uint8_t*>(all.data()), all.size_bytes()};
}
// The inverse. Trailing bytes that do not make a whole number are ignored.
template <class Number>
void append_numbers(std::span<const uint8_t> bytes, std::vector<Number>& out) {
  const size_t before = out.size(), count = bytes.size() / sizeof(Number);
  out.resize(before + count);
  if (count > 0) std::memcpy(out.data() + before, bytes.data(), count * sizeof(Number));
}
inline void copy_bytes(std::span<const uint8_t> bytes, Buffer& out) {
  out.resize(bytes.size());
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
}

class ByteWriter {
 public:
  template <class Number>
  void number(Number value) {
    const auto* raw = reinterpret_cast<const uint8_t*>(&value);
    out.insert(out.end(), raw, raw + sizeof value);
  }
  void text(std::string_view text) {
    number(uint64_t{text.size()});
    bytes(text);
  }
  void bytes(std::string_view text) { out.insert(out.end(), text.begin(), text.end()); }
  void bytes(std::span<const uint8_t> data) { out.insert(out.end(), data.begin(), data.end()); }
  void zeros(size_t count) { out.insert(out.end(), count, 0); }
  std::vector<uint8_t> out;
};

// The caller owns the bytes.
class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes) : rest_(bytes) {}
  bool good() const { return good_; }
  bool at_end() const { return good_ && rest_.empty(); }
  size_t left() const { return rest_.size(); }
  std::span<const uint8_t> bytes(uint64_t count) {
    if (count > rest_.size()) good_ = false;
    if (!good_) return {};
    const std::span<const uint8_t> out = rest_.first(count);
    rest_ = rest_.subspan(count);
    return out;
  }
  std::string_view text(uint64_t count) {
    const std::span<const uint8_t> raw = bytes(count);
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }
  // Reads what ByteWriter::text() wrote.
  std::string_view text() { return text(number<uint64_t>()); }
  template <class Number>
  Number number() {
    Number value = 0;
    const std::span<const uint8_t> raw = bytes(sizeof value);
    if (good_) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }

 private:
  std::span<const uint8_t> rest_;
  bool good_ = true;
};

}  // namespace headrace
