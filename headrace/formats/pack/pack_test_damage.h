// SPDX-License-Identifier: Apache-2.0
// For tests and the fuzzer: corrects the checksums of packs that were changed on purpose, so that
// the code after the checks is tested too.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "headrace/formats/pack/pack_layout.h"
#include "headrace/storage/crc32c.h"

namespace headrace {

template <class Number>
Number number_at(std::span<const uint8_t> bytes, uint64_t offset) {
  Number value = 0;
  if (offset <= bytes.size() && bytes.size() - offset >= sizeof value) {
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  }
  return value;
}

inline void put_checksum(std::span<uint8_t> bytes, uint64_t offset, uint32_t sum) {
  if (offset <= bytes.size() && bytes.size() - offset >= sizeof sum) {
    std::memcpy(bytes.data() + offset, &sum, sizeof sum);
  }
}

// The available part of [offset, offset + count).
inline std::span<const uint8_t> part_of(std::span<const uint8_t> bytes, uint64_t offset,
                                        uint64_t count) {
  if (offset >= bytes.size()) return {};
  return bytes.subspan(offset, std::min<uint64_t>(count, bytes.size() - offset));
}

inline void correct_pages(std::span<uint8_t> bytes) {
  uint64_t at = number_at<uint32_t>(bytes, 12);
  while (at + kPageHeaderBytes <= bytes.size() && number_at<uint32_t>(bytes, at) == kPageMagic) {
    const auto page_bytes = number_at<uint64_t>(bytes, at + 8);
    const auto table = part_of(bytes, at + kPageHeaderBytes, number_at<uint32_t>(bytes, at + 36));
    const auto header = part_of(bytes, at + 8, kPageHeaderBytes - 8);
    put_checksum(bytes, at + 4, crc32c(table, crc32c(header)));
    if (page_bytes == 0 || page_bytes > bytes.size()) return;
    at += page_bytes;
  }
}

// Offsets are from docs/spec/pack-format.md.
inline void correct_checksums(std::vector<uint8_t>& bytes) {
  const auto metadata = part_of(bytes, kPackHeaderFixed, number_at<uint32_t>(bytes, 72));
  put_checksum(bytes, 80, crc32c(metadata));
  put_checksum(bytes, 84, crc32c(part_of(bytes, 0, 84)));
  correct_pages(bytes);
  if (bytes.size() < kPackTailBytes) return;
  const uint64_t tail = bytes.size() - kPackTailBytes;
  const auto directory = number_at<uint64_t>(bytes, tail);
  const uint64_t count = number_at<uint32_t>(bytes, tail + 8);
  for (uint64_t i = 0; i < count && directory + (i + 1) * kSectionEntryBytes <= bytes.size(); ++i) {
    const uint64_t entry = directory + i * kSectionEntryBytes;
    const auto section = part_of(bytes, number_at<uint64_t>(bytes, entry + 8),
                                 number_at<uint64_t>(bytes, entry + 16));
    put_checksum(bytes, entry + 24, crc32c(section));
  }
  put_checksum(bytes, tail + 12, crc32c(part_of(bytes, directory, count * kSectionEntryBytes)));
  put_checksum(bytes, tail + kPackTailBytes - 12,
               crc32c(part_of(bytes, tail, kPackTailBytes - 12)));
}

}  // namespace headrace
