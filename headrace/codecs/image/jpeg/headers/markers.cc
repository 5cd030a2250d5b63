// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/headers/markers.h"

#include <cstring>

#include "headrace/codecs/image/exif.h"
#include "headrace/codecs/image/jpeg/headers/syntax.h"

namespace headrace {
namespace {

using namespace jpeg_marker;

bool is_frame(int marker) {
  // These three codes are in the range of frames but are not frames.
  const bool other = marker == kDht || marker == kJpg || marker == kDac;
  return marker >= kSof0 && marker <= kSof15 && !other;
}

// The bytes after a segment's identifier; empty if it has a different one.
std::span<const uint8_t> after(std::string_view name, std::span<const uint8_t> body) {
  const bool is =
      body.size() > name.size() && std::memcmp(body.data(), name.data(), name.size()) == 0;
  return is ? body.subspan(name.size()) : std::span<const uint8_t>();
}

}  // namespace

JpegMarkers read_jpeg_markers(std::span<const uint8_t> bytes) {
  using namespace std::string_view_literals;
  JpegMarkers found;
  bool saw_exif = false;
  int by_exif = 0, by_xmp = 0;  // 0: absent
  const auto end = [&] {
    found.exif_orientation = by_exif ? by_exif : by_xmp ? by_xmp : 1;
    return found;
  };
  size_t at = 0;
  while (true) {
    // Like libjpeg: skips garbage and fill bytes before a marker.
    while (at < bytes.size() && bytes[at] != 0xFF) ++at;
    while (at < bytes.size() && bytes[at] == 0xFF) ++at;
    if (at >= bytes.size()) return end();
    const int marker = bytes[at++];
    if (marker == kEoi) return end();
    if (marker == 0 || stands_alone(marker)) continue;
    if (marker == kSos || bytes.size() - at < 2) return end();
    const size_t length = size_t{big_u16(bytes, at)};
    if (length < 2 || length > bytes.size() - at) return end();
    if (is_frame(marker) && !found.frame) found.frame = marker;
    const auto body = bytes.subspan(at + 2, length - 2);
    if (marker == kApp1) {
      if (const auto tiff = after("Exif\0\0"sv, body); !tiff.empty() && !saw_exif) {
        saw_exif = true;
        by_exif = orientation_of_exif_chunk(tiff);
      }
      const auto xmp = after("http://ns.adobe.com/xap/1.0/\0"sv, body);
      if (!xmp.empty()) by_xmp = orientation_of_xmp(xmp);
    }
    at += length;
  }
}

std::string_view unsupported_frame_name(int marker) {
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
