// SPDX-License-Identifier: Apache-2.0
// Tags around a file's audio: ID3v2 (section 3.1) before it; APE and ID3v1 after it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/codecs/image/byte_order.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// Bytes of the ID3v2 tag at the start; 0 if there is none.
inline size_t id3_bytes(std::span<const uint8_t> bytes) {
  if (bytes.size() < 10 || bytes[0] != 'I' || bytes[1] != 'D' || bytes[2] != '3') return 0;
  size_t length = 0;
  for (size_t i = 6; i < 10; ++i) length = length << 7 | (bytes[i] & 0x7Fu);
  return length + (bytes[5] & 0x10 ? 20 : 10);  // with a footer
}

// Where the content begins after ID3v2 tags, of which some files have several. A tag whose size
// reaches the end of the file is not treated as a tag.
inline Result<uint64_t> offset_after_id3(const ByteRanges& file) {
  constexpr uint64_t kTagHeader = 10;
  for (uint64_t at = 0;;) {
    const Result<std::span<const uint8_t>> head = file.at(at, kTagHeader);
    if (!head) return head.error();
    const uint64_t tag = id3_bytes(*head);
    if (tag == 0 || tag >= file.size() - at) return at;
    at += tag;
  }
}

// Where the tags after the audio begin; the file's size if there are none.
inline Result<uint64_t> start_of_end_tags(const ByteRanges& file) {
  constexpr uint64_t kId3 = 128, kApeFooter = 32;
  const auto says = [](std::span<const uint8_t> bytes, std::string_view word) {
    return bytes.size() >= word.size() && std::memcmp(bytes.data(), word.data(), word.size()) == 0;
  };
  uint64_t end = file.size();
  if (end >= kId3) {
    const Result<std::span<const uint8_t>> last = file.at(end - kId3, kId3);
    if (!last) return last.error();
    if (says(*last, "TAG")) end -= kId3;
  }
  if (end < kApeFooter) return end;
  const Result<std::span<const uint8_t>> footer = file.at(end - kApeFooter, kApeFooter);
  if (!footer) return footer.error();
  if (!says(*footer, "APETAGEX")) return end;
  // The size covers its items and footer, but not a header.
  const bool has_header = little_u32(*footer, 20) >> 31;
  const uint64_t bytes = uint64_t{little_u32(*footer, 12)} + (has_header ? kApeFooter : 0);
  return end - std::min(std::max(bytes, kApeFooter), end);
}

// Whether there are only such tags, and zeros before them, starting at this position.
inline Result<bool> only_end_tags_follow(const ByteRanges& file, uint64_t from) {
  constexpr uint64_t kBlock = 4096;
  const Result<uint64_t> tags = start_of_end_tags(file);
  if (!tags) return tags.error();
  for (uint64_t at = from; at < *tags; at += kBlock) {
    const Result<std::span<const uint8_t>> bytes = file.at(at, std::min(kBlock, *tags - at));
    if (!bytes) return bytes.error();
    if (std::ranges::any_of(*bytes, [](uint8_t byte) { return byte != 0; })) return false;
  }
  return true;
}

}  // namespace headrace
