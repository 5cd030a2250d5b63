// SPDX-License-Identifier: Apache-2.0
// Tags that stand before the sound of a file (ID3v2, section 3.1).
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// Bytes of the tag at the begin; 0 where there is none.
inline size_t id3_bytes(std::span<const uint8_t> bytes) {
  if (bytes.size() < 10 || bytes[0] != 'I' || bytes[1] != 'D' || bytes[2] != '3') return 0;
  size_t length = 0;
  for (size_t i = 6; i < 10; ++i) length = length << 7 | (bytes[i] & 0x7Fu);
  return length + (bytes[5] & 0x10 ? 20 : 10);  // with a footer
}

// Where the file goes on behind such tags, of which some files have several. What would begin
// behind the file's end is not a tag.
inline Result<uint64_t> behind_id3(const ByteRanges& file) {
  constexpr uint64_t kTagHeader = 10;
  for (uint64_t at = 0;;) {
    const Result<std::span<const uint8_t>> head = file.at(at, kTagHeader);
    if (!head) return head.error();
    const uint64_t tag = id3_bytes(*head);
    if (tag == 0 || tag >= file.size() - at) return at;
    at += tag;
  }
}

}  // namespace headrace
