// SPDX-License-Identifier: Apache-2.0
// Numbers and strings one after another, as the files store them that we write and most that we
// read: little-endian, unaligned.
//
// The reader checks bounds and may be let loose on anybody's bytes: after the first thing that is
// not there everything is zero or empty, so a parser asks good() once, before it believes a number.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace headrace {

static_assert(std::endian::native == std::endian::little, "numbers are copied in memory order");

class ByteWriter {
 public:
  template <class Number>
  void number(Number value) {
    const auto* raw = reinterpret_cast<const uint8_t*>(&value);
    out.insert(out.end(), raw, raw + sizeof value);
  }
  void bytes(std::string_view text) { out.insert(out.end(), text.begin(), text.end()); }
  void bytes(std::span<const uint8_t> data) { out.insert(out.end(), data.begin(), data.end()); }
  void zeros(size_t count) { out.insert(out.end(), count, 0); }
  std::vector<uint8_t> out;
};

// The bytes stay the caller's.
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
