// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/exif.h"

#include <cstddef>

namespace headrace {
namespace {

// Integers of a TIFF structure in its own byte order. Callers check bounds.
struct TiffReader {
  std::span<const uint8_t> bytes;
  bool big_endian = false;

  uint32_t u16(size_t at) const {
    return big_endian ? bytes[at] << 8 | bytes[at + 1] : bytes[at + 1] << 8 | bytes[at];
  }
  uint32_t u32(size_t at) const {
    return big_endian ? u16(at) << 16 | u16(at + 2) : u16(at + 2) << 16 | u16(at);
  }
};

}  // namespace

int orientation_of_tiff(std::span<const uint8_t> tiff) {
  constexpr size_t kEntryBytes = 12;
  constexpr uint32_t kOrientation = 0x0112, kByte = 1, kShort = 3, kLong = 4;
  if (tiff.size() < 8) return 1;
  const bool big_endian = tiff[0] == 'M' && tiff[1] == 'M';
  if (!big_endian && !(tiff[0] == 'I' && tiff[1] == 'I')) return 1;
  const TiffReader in{tiff, big_endian};
  if (in.u16(2) != 42) return 1;
  const size_t directory = in.u32(4);
  if (directory > tiff.size() - 2) return 1;
  const size_t entries = in.u16(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (entry + kEntryBytes > tiff.size()) return 1;
    if (in.u16(entry) != kOrientation) continue;
    if (in.u32(entry + 4) != 1) return 1;
    // The standard says SHORT; writers that use BYTE or LONG are understood as Pillow does.
    const uint32_t type = in.u16(entry + 2);
    uint32_t value = 0;
    if (type == kByte) value = tiff[entry + 8];
    if (type == kShort) value = in.u16(entry + 8);
    if (type == kLong) value = in.u32(entry + 8);
    return value >= 1 && value <= 8 ? int(value) : 1;
  }
  return 1;
}

}  // namespace headrace
