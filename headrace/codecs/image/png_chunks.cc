// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/png_chunks.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "headrace/base/text.h"
#include "headrace/codecs/image/byte_order.h"
#include "headrace/codecs/image/exif.h"

namespace headrace {
namespace {

constexpr size_t kSignatureBytes = 8;
constexpr size_t kChunkHeadBytes = 8;  // length and type
constexpr size_t kChunkCrcBytes = 4;

// The text of an iTXt chunk that holds XMP as it is; empty for any other, and where it is
// compressed: that would be a bomb's place.
std::span<const uint8_t> xmp_of(std::span<const uint8_t> chunk) {
  constexpr std::string_view kKeyword{"XML:com.adobe.xmp\0", 18};
  if (!has_text(chunk, kKeyword) || chunk.size() < kKeyword.size() + 2) return {};
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
    const size_t length = big_u32(chunk, 0);
    const auto type = chunk.subspan(4);
    if (length > chunk.size() - kChunkHeadBytes || has_text(type, "IDAT")) break;
    const auto content = chunk.subspan(kChunkHeadBytes, length);
    if (has_text(type, "eXIf") && by_exif == 0) by_exif = orientation_of_exif_chunk(content);
    if (has_text(type, "iTXt") && by_xmp == 0) by_xmp = orientation_of_xmp(xmp_of(content));
    at += kChunkHeadBytes + length + kChunkCrcBytes;
  }
  return by_exif ? by_exif : std::max(by_xmp, 1);
}

}  // namespace headrace
