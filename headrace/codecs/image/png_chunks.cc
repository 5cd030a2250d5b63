// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/png_chunks.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "headrace/codecs/image/exif.h"

namespace headrace {
namespace {

constexpr size_t kSignatureBytes = 8;
constexpr size_t kChunkHeadBytes = 8;  // length and type
constexpr size_t kChunkCrcBytes = 4;

bool starts_with(std::span<const uint8_t> bytes, std::string_view text) {
  return bytes.size() >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(),
                    [](char a, uint8_t b) { return uint8_t(a) == b; });
}

// The text of an iTXt chunk that holds XMP as it is; empty for any other, and where it is
// compressed: that would be a bomb's place.
std::span<const uint8_t> xmp_of(std::span<const uint8_t> chunk) {
  constexpr std::string_view kKeyword{"XML:com.adobe.xmp\0", 18};
  if (!starts_with(chunk, kKeyword) || chunk.size() < kKeyword.size() + 2) return {};
  if (chunk[kKeyword.size()] != 0) return {};
  auto rest = chunk.subspan(kKeyword.size() + 2);
  for (int text = 0; text < 2; ++text) {  // a language, a translated keyword
    const auto end = std::find(rest.begin(), rest.end(), uint8_t{0});
    if (end == rest.end()) return {};
    rest = rest.subspan(size_t(end - rest.begin()) + 1);
  }
  return rest;
}

}  // namespace

int png_orientation(std::span<const uint8_t> file) {
  size_t at = kSignatureBytes;
  int by_exif = 0, by_xmp = 0;  // 0: not there
  while (at <= file.size() && file.size() - at >= kChunkHeadBytes) {
    const std::span<const uint8_t> chunk = file.subspan(at);
    const size_t length = size_t{chunk[0]} << 24 | chunk[1] << 16 | chunk[2] << 8 | chunk[3];
    const auto type = chunk.subspan(4);
    if (length > chunk.size() - kChunkHeadBytes || starts_with(type, "IDAT")) break;
    auto content = chunk.subspan(kChunkHeadBytes, length);
    if (starts_with(type, "eXIf") && by_exif == 0) {
      // Some writers put JPEG's APP1 identifier in front.
      if (starts_with(content, {"Exif\0\0", 6})) content = content.subspan(6);
      by_exif = orientation_tag(content);
    }
    if (starts_with(type, "iTXt") && by_xmp == 0) by_xmp = orientation_of_xmp(xmp_of(content));
    at += kChunkHeadBytes + length + kChunkCrcBytes;
  }
  return by_exif ? by_exif : std::max(by_xmp, 1);
}

}  // namespace headrace
