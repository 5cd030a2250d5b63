// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/jpeg/jpeg_markers.h"

#include <cstring>

#include "headrace/codecs/jpeg/jpeg_syntax.h"

namespace headrace {
namespace {

using namespace jpeg_marker;

bool is_frame(int marker) {
  // These three lie among the frames and are none.
  const bool other = marker == kDht || marker == kJpg || marker == kDac;
  return marker >= kSof0 && marker <= kSof15 && !other;
}

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

JpegMarkers read_jpeg_markers(std::span<const uint8_t> bytes) {
  constexpr uint8_t kExif[] = {'E', 'x', 'i', 'f', 0, 0};
  JpegMarkers found;
  bool saw_exif = false;
  size_t at = 0;
  while (true) {
    // As libjpeg does: garbage before a marker is passed over, fill bytes too.
    while (at < bytes.size() && bytes[at] != 0xFF) ++at;
    while (at < bytes.size() && bytes[at] == 0xFF) ++at;
    if (at >= bytes.size()) return found;
    const int marker = bytes[at++];
    if (marker == kEoi) return found;
    if (marker == 0 || stands_alone(marker)) continue;
    if (marker == kSos || bytes.size() - at < 2) return found;
    const size_t length = size_t(big_endian_16(bytes, at));
    if (length < 2 || length > bytes.size() - at) return found;
    if (is_frame(marker) && !found.frame) found.frame = marker;
    const auto body = bytes.subspan(at + 2, length - 2);
    if (marker == kApp1 && !saw_exif && body.size() > sizeof(kExif) &&
        std::memcmp(body.data(), kExif, sizeof(kExif)) == 0) {
      saw_exif = true;
      found.exif_orientation = orientation_of_tiff(body.subspan(sizeof(kExif)));
    }
    at += length;
  }
}

std::string_view undecoded_frame_name(int marker) {
  switch (marker) {
    case 0xC3:
      return "lossless";
    case 0xC5:
      return "hierarchical (differential sequential)";
    case 0xC6:
      return "hierarchical (differential progressive)";
    case 0xC7:
      return "hierarchical (differential lossless)";
    case 0xC8:
      return "JPEG extension";
    case 0xCB:
      return "arithmetic-coded lossless";
    case 0xCD:
      return "hierarchical (arithmetic-coded differential sequential)";
    case 0xCE:
      return "hierarchical (arithmetic-coded differential progressive)";
    case 0xCF:
      return "hierarchical (arithmetic-coded differential lossless)";
    case 0xDE:
      return "hierarchical";
    case 0xF7:
      return "JPEG-LS";
  }
  return {};
}

}  // namespace headrace
