// SPDX-License-Identifier: Apache-2.0
// Parses the fields of a protobuf message (the wire format of proto2 and proto3) from untrusted
// bytes.
//
//   ProtoReader in(bytes);
//   while (in.next()) {
//     if (in.field() == 1 && in.is(ProtoType::kBytes)) name = in.bytes();
//   }
//   if (!in.good()) ... in.problem(), in.offset()
//
// Does not copy, allocate or recurse: a nested message is bytes for another reader, so the caller
// limits the depth. Groups, deprecated since 2008, are rejected.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "headrace/base/text.h"

namespace headrace {

enum class ProtoType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Consecutive varints (seven bits per byte), as in packed fields.
class VarintReader {
 public:
  explicit VarintReader(std::span<const uint8_t> bytes) : rest_(bytes) {}
  bool good() const { return good_; }
  bool at_end() const { return rest_.empty() || !good_; }
  size_t left() const { return rest_.size(); }
  // 0 after the first varint that is truncated or longer than 64 bits.
  uint64_t next() {
    if (good_ && !rest_.empty() && rest_[0] < 0x80) {
      const uint64_t value = rest_[0];
      rest_ = rest_.subspan(1);
      return value;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < rest_.size() && i < 10; ++i) {
      if (i == 9 && rest_[i] > 1) break;
      value |= static_cast<uint64_t>(rest_[i] & 0x7F) << (7 * i);
      if (rest_[i] < 0x80) {
        rest_ = rest_.subspan(i + 1);
        return value;
      }
    }
    good_ = false;
    return 0;
  }
  // REQUIRES: count <= left().
  std::span<const uint8_t> take(size_t count) {
    const std::span<const uint8_t> out = rest_.first(count);
    rest_ = rest_.subspan(count);
    return out;
  }

 private:
  std::span<const uint8_t> rest_;
  bool good_ = true;
};

class ProtoReader {
 public:
  explicit ProtoReader(std::span<const uint8_t> message) : size_(message.size()), in_(message) {}

  // Advances to the next field. False at the end, and at the first error.
  bool next() {
    if (problem_ || in_.left() == 0) return false;
    offset_ = size_ - in_.left();
    const uint64_t tag = in_.next();
    if (!in_.good()) return fail("a tag is truncated");
    if (tag >> 3 == 0 || tag >> 32 != 0) return fail("no field has this number");
    field_ = static_cast<uint32_t>(tag >> 3);
    type_ = static_cast<ProtoType>(tag & 7);
    bytes_ = {};
    number_ = 0;
    switch (type_) {
      case ProtoType::kVarint:
        number_ = in_.next();
        return in_.good() || fail("a number is truncated");
      case ProtoType::kFixed64:
        return take_fixed<uint64_t>();
      case ProtoType::kFixed32:
        return take_fixed<uint32_t>();
      case ProtoType::kBytes: {
        const uint64_t length = in_.next();
        if (!in_.good()) return fail("a length is truncated");
        if (length > in_.left()) return fail("a length extends beyond the message");
        bytes_ = in_.take(length);
        return true;
      }
    }
    return fail("a field of an unknown wire type");
  }

  // The current field.
  uint32_t field() const { return field_; }
  ProtoType type() const { return type_; }
  bool is(ProtoType type) const { return type_ == type; }
  uint64_t number() const { return number_; }  // for number types: the raw bits
  std::span<const uint8_t> bytes() const { return bytes_; }
  std::string_view text() const { return text_from_bytes(bytes_); }
  size_t offset() const { return offset_; }  // of the field's tag in the message

  bool good() const { return !problem_; }
  const char* problem() const { return problem_ ? problem_ : ""; }

 private:
  bool fail(const char* problem) {
    problem_ = problem;
    return false;
  }
  template <class Number>
  bool take_fixed() {
    if (in_.left() < sizeof(Number)) return fail("a number is truncated");
    bytes_ = in_.take(sizeof(Number));
    Number value;
    std::memcpy(&value, bytes_.data(), sizeof value);
    number_ = value;
    return true;
  }

  size_t size_;
  VarintReader in_;
  uint32_t field_ = 0;
  ProtoType type_ = ProtoType::kVarint;
  uint64_t number_ = 0;
  std::span<const uint8_t> bytes_;
  size_t offset_ = 0;
  const char* problem_ = nullptr;
};

}  // namespace headrace
