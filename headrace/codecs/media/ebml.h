// SPDX-License-Identifier: Apache-2.0
// Iterates over EBML elements (RFC 8794), none of which exceeds its parent. Allocates nothing; the
// caller owns the bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "headrace/codecs/media/big_endian_reader.h"

namespace headrace {

// A variable-length number. The leading zeros of its first byte give the number of following bytes;
// the leading one bit is part of an element's id, but not of a length. Empty if it is longer than
// `most` bytes, or truncated.
struct EbmlNumber {
  uint64_t with_marker = 0, value = 0;
  int bytes = 0;
  bool is_unknown() const { return value == (uint64_t{1} << 7 * bytes) - 1; }  // all ones
};
inline std::optional<EbmlNumber> ebml_number(std::span<const uint8_t> bytes, int most) {
  if (bytes.empty()) return {};
  const int length = std::countl_zero(bytes[0]) + 1;
  if (length > most || static_cast<size_t>(length) > bytes.size()) return {};
  EbmlNumber out{.bytes = length};
  for (int i = 0; i < length; ++i) out.with_marker = out.with_marker << 8 | bytes[size_t(i)];
  out.value = out.with_marker & ((uint64_t{1} << 7 * length) - 1);
  return out;
}

struct EbmlElement {
  uint32_t id = 0;
  size_t at = 0, body = 0;           // offsets of its header and content, from the start of the
                                     // bytes
  bool unknown_size = false;         // it ends before the first element that cannot be its child
  std::span<const uint8_t> content;  // to the end of the bytes if its size is unknown

  uint64_t number() const {
    return content.size() > 8 ? 0
                              : BigEndianReader(content).number(static_cast<int>(content.size()));
  }
  double real() const {
    BigEndianReader reader(content);
    if (content.size() == 4) return std::bit_cast<float>(reader.u32());
    return content.size() == 8 ? std::bit_cast<double>(reader.u64()) : 0.0;
  }
};

class EbmlElements {
 public:
  explicit EbmlElements(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  // Reads the next element, and moves past it. False at the end, and if there is no complete
  // element.
  bool next(EbmlElement& element) {
    if (at_ == bytes_.size() || broken_) return false;
    element.at = at_;
    const auto rest = bytes_.subspan(at_);
    const std::optional<EbmlNumber> id = ebml_number(rest, 4);
    const auto size = id ? ebml_number(rest.subspan(static_cast<size_t>(id->bytes)), 8)
                         : std::optional<EbmlNumber>();
    if (!size) return !(broken_ = true);
    element.id = static_cast<uint32_t>(id->with_marker);
    element.body = at_ + static_cast<size_t>(id->bytes + size->bytes);
    element.unknown_size = size->is_unknown();
    const size_t left = bytes_.size() - element.body;
    truncated_ = !element.unknown_size && size->value > left;
    if (truncated_) return !(broken_ = true);
    element.content = bytes_.subspan(
        element.body, element.unknown_size ? left : static_cast<size_t>(size->value));
    at_ = element.body + element.content.size();
    return true;
  }
  // Continues with the element's contents, instead of the next element.
  void enter(const EbmlElement& element) { at_ = element.body; }

  bool broken() const { return broken_; }
  bool truncated() const { return truncated_; }  // the bytes end before the last element

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  bool broken_ = false, truncated_ = false;
};

}  // namespace headrace
