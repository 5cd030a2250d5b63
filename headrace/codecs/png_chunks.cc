// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/png_chunks.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "headrace/codecs/exif.h"

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

}  // namespace

int png_orientation(std::span<const uint8_t> file) {
  size_t at = kSignatureBytes;
  while (at <= file.size() && file.size() - at >= kChunkHeadBytes) {
    const std::span<const uint8_t> chunk = file.subspan(at);
    const size_t length = size_t{chunk[0]} << 24 | chunk[1] << 16 | chunk[2] << 8 | chunk[3];
    const auto type = chunk.subspan(4);
    if (length > chunk.size() - kChunkHeadBytes || starts_with(type, "IDAT")) return 1;
    if (starts_with(type, "eXIf")) {
      auto tiff = chunk.subspan(kChunkHeadBytes, length);
      // Some writers put JPEG's APP1 identifier in front.
      if (starts_with(tiff, {"Exif\0\0", 6})) tiff = tiff.subspan(6);
      return orientation_of_tiff(tiff);
    }
    at += kChunkHeadBytes + length + kChunkCrcBytes;
  }
  return 1;
}

}  // namespace headrace
