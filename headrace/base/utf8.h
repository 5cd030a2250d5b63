// SPDX-License-Identifier: Apache-2.0
// Whether bytes are text: well-formed UTF-8 as Unicode's table 3-7 has it, and as Python decodes
// it.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

inline bool is_utf8(std::span<const uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const uint8_t first = bytes[i];
    if (first < 0x80) {
      ++i;
      continue;
    }
    const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || length > bytes.size() - i) return false;
    // The second byte is narrowed so that nothing is overlong, a surrogate, or above U+10FFFF.
    const uint8_t least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const uint8_t most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (bytes[i + 1] < least || bytes[i + 1] > most) return false;
    for (size_t k = 2; k < length; ++k) {
      if ((bytes[i + k] & 0xC0) != 0x80) return false;
    }
    i += length;
  }
  return true;
}

}  // namespace headrace
