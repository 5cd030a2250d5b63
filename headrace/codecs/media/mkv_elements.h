// SPDX-License-Identifier: Apache-2.0
// Iterates over the elements of a file, as EbmlElements does over elements in memory, but reads
// only the header and the first bytes of each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/codecs/media/ebml.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

struct MkvElement {
  // Numbers have 8 bytes, and a block's header has 11.
  static constexpr size_t kFirst = 16;
  uint32_t id = 0;
  uint64_t at = 0, body = 0, size = 0;  // offsets of its header and content, and the content's size
  bool unknown_size = false;            // it ends before the first element that cannot be its child
  std::span<const uint8_t> first;       // up to kFirst bytes of the content, valid until the next
                                        // element is read

  uint64_t number() const { return size > 8 ? 0 : EbmlElement{.content = first}.number(); }
};

class MkvElements {
 public:
  // The elements in [begin, end).
  MkvElements(const ByteRanges& file, uint64_t begin, uint64_t end)
      : file_(file), at_(begin), end_(end) {}

  // Same as EbmlElements::next.
  bool next(MkvElement& element) {
    constexpr size_t kIdAndSize = 12;
    if (at_ == end_ || broken_ || !read_) return false;
    element.at = at_;
    Result<std::span<const uint8_t>> found =
        file_.at(at_, std::min<uint64_t>(end_ - at_, kIdAndSize + MkvElement::kFirst));
    if (!found) {
      read_ = std::move(found.error());
      return false;
    }
    const std::span<const uint8_t> rest = *found;
    const std::optional<EbmlNumber> id = ebml_number(rest, 4);
    const auto size = id ? ebml_number(rest.subspan(static_cast<size_t>(id->bytes)), 8)
                         : std::optional<EbmlNumber>();
    if (!size) return !(broken_ = true);
    const auto head = static_cast<size_t>(id->bytes + size->bytes);
    const uint64_t left = end_ - at_ - head;
    element.id = static_cast<uint32_t>(id->with_marker);
    element.body = at_ + head;
    element.unknown_size = size->is_unknown();
    truncated_ = !element.unknown_size && size->value > left;
    if (truncated_) return !(broken_ = true);
    element.size = element.unknown_size ? left : size->value;
    element.first = rest.subspan(
        head, static_cast<size_t>(
                  std::min<uint64_t>({element.size, rest.size() - head, MkvElement::kFirst})));
    at_ = element.body + element.size;
    return true;
  }
  // Continues with the element's contents, instead of the next element.
  void enter(const MkvElement& element) { at_ = element.body; }

  bool broken() const { return broken_; }
  bool truncated() const { return truncated_; }  // the file ends before the last element
  Result<void>& read() { return read_; }         // whether the file could be read

 private:
  const ByteRanges& file_;
  uint64_t at_, end_;
  bool broken_ = false, truncated_ = false;
  Result<void> read_;
};

}  // namespace headrace
