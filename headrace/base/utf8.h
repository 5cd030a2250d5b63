// SPDX-License-Identifier: Apache-2.0
// Well-formed UTF-8, as defined in Unicode's table 3-7 and as decoded by Python.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headrace {

// Length in bytes of a character, from its first byte alone; 0: no character begins with it.
inline size_t utf8_length_from(uint8_t first) {
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  return first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
}

// Length in bytes of the first character; 0: empty or invalid.
inline size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const size_t length = text.empty() ? 0 : utf8_length_from(byte(0));
  if (length < 2) return length;
  if (length > text.size()) return 0;
  // The range of the second byte excludes overlong forms, surrogates, and code points above
  // U+10FFFF.
  const uint8_t first = byte(0);
  const uint8_t least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const uint8_t most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < least || byte(1) > most) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

inline bool is_utf8(std::span<const uint8_t> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// REQUIRES: a code point that is not a surrogate.
inline void append_utf8(uint32_t code, std::string& out) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (code >> shift & 63)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace headrace
