// SPDX-License-Identifier: Apache-2.0
// Tags that stand before the sound of a file (ID3v2, section 3.1).
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// Bytes of the tag at the begin; 0 where there is none.
inline size_t id3_bytes(std::span<const uint8_t> bytes) {
  if (bytes.size() < 10 || bytes[0] != 'I' || bytes[1] != 'D' || bytes[2] != '3') return 0;
  size_t length = 0;
  for (size_t i = 6; i < 10; ++i) length = length << 7 | (bytes[i] & 0x7Fu);
  return length + (bytes[5] & 0x10 ? 20 : 10);  // with a footer
}

// What stands behind such tags, of which some files have several; all where that is not there.
inline std::span<const uint8_t> behind_id3(std::span<const uint8_t> bytes) {
  for (size_t tag = id3_bytes(bytes); tag > 0 && tag < bytes.size(); tag = id3_bytes(bytes)) {
    bytes = bytes.subspan(tag);
  }
  return bytes;
}

}  // namespace headrace
