// SPDX-License-Identifier: Apache-2.0
// For the PNG tests and the fuzzer: corrects the chunks' checksums after bytes were changed, so
// that the damage gets past libpng's checksum test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace::png_test {

// PNG specification, annex D.
inline uint32_t chunk_checksum(std::span<const uint8_t> type_and_data) {
  uint32_t crc = ~uint32_t{0};
  for (uint8_t byte : type_and_data) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? 0xedb88320u ^ crc >> 1 : crc >> 1;
  }
  return ~crc;
}

inline void repair_checksums(std::span<uint8_t> file) {
  for (size_t at = 8; at < file.size() && file.size() - at >= 12;) {
    const auto chunk = file.subspan(at);
    const size_t length = size_t{chunk[0]} << 24 | chunk[1] << 16 | chunk[2] << 8 | chunk[3];
    if (length > chunk.size() - 12) return;
    const uint32_t crc = chunk_checksum(chunk.subspan(4, 4 + length));
    for (size_t i = 0; i < 4; ++i) chunk[8 + length + i] = uint8_t(crc >> (24 - 8 * i));
    at += 12 + length;
  }
}

}  // namespace headrace::png_test
