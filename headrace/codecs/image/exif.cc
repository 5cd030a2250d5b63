// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/exif.h"

#include <cstddef>
#include <string_view>

#include "headrace/base/text.h"

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

int orientation_tag(std::span<const uint8_t> tiff) {
  constexpr size_t kEntryBytes = 12;
  constexpr uint32_t kOrientation = 0x0112, kShort = 3, kLong = 4;
  if (tiff.size() < 8) return 0;
  const bool big_endian = tiff[0] == 'M' && tiff[1] == 'M';
  if (!big_endian && !(tiff[0] == 'I' && tiff[1] == 'I')) return 0;
  const TiffReader in{tiff, big_endian};
  // Some writers store the number in the other byte order; Pillow accepts those, too.
  if (in.u16(2) != 42 && in.u16(2) != 42 << 8) return 0;
  const size_t directory = in.u32(4);
  if (directory > tiff.size() - 2) return 0;
  const size_t entries = in.u16(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (entry + kEntryBytes > tiff.size()) return 0;
    if (in.u16(entry) != kOrientation) continue;
    if (in.u32(entry + 4) != 1) return 1;
    // The standard requires SHORT; LONG is accepted, too, BYTE is not: as in Pillow.
    const uint32_t type = in.u16(entry + 2);
    uint32_t value = 0;
    if (type == kShort) value = in.u16(entry + 8);
    if (type == kLong) value = in.u32(entry + 8);
    return value >= 1 && value <= 8 ? int(value) : 1;
  }
  return 0;
}

int orientation_of_exif_chunk(std::span<const uint8_t> chunk) {
  constexpr std::string_view kIdentifier{"Exif\0\0", 6};
  for (int i = 0; i < 2 && has_text(chunk, kIdentifier); ++i) {
    chunk = chunk.subspan(kIdentifier.size());
  }
  return orientation_tag(chunk);
}

int orientation_of_xmp(std::span<const uint8_t> packet) {
  constexpr std::string_view kName = "tiff:Orientation";
  const std::string_view text = text_from_bytes(packet);
  for (size_t at = text.find(kName); at != text.npos; at = text.find(kName, at + 1)) {
    std::string_view rest = text.substr(at + kName.size());
    const size_t opening = rest.starts_with("=\"") ? 2 : rest.starts_with('>') ? 1 : 0;
    rest.remove_prefix(opening);
    if (opening == 0 || rest.empty() || rest[0] < '0' || rest[0] > '9') continue;
    return rest[0] >= '1' && rest[0] <= '8' ? rest[0] - '0' : 1;
  }
  return 0;
}

}  // namespace headrace
