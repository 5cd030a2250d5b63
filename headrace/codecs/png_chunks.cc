// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/png_chunks.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

namespace headrace {
namespace {

constexpr size_t kSignatureBytes = 8;
constexpr size_t kChunkHeadBytes = 8;  // length and type
constexpr size_t kChunkCrcBytes = 4;

// Numbers of a TIFF structure, in its byte order.
class TiffReader {
 public:
  explicit TiffReader(std::span<const uint8_t> bytes)
      : bytes_(bytes), little_(!bytes.empty() && bytes[0] == 'I') {}

  std::optional<uint32_t> number(size_t at, int bytes) const {
    if (at > bytes_.size() || bytes_.size() - at < size_t(bytes)) return std::nullopt;
    uint32_t value = 0;
    for (int i = 0; i < bytes; ++i) {
      value = value << 8 | bytes_[at + size_t(little_ ? bytes - 1 - i : i)];
    }
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
  bool little_;
};

bool starts_with(std::span<const uint8_t> bytes, std::string_view text) {
  return bytes.size() >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(),
                    [](char a, uint8_t b) { return uint8_t(a) == b; });
}

// EXIF 2.3, 4.6.4: tag 274, SHORT, in the first directory.
int orientation_of_tiff(std::span<const uint8_t> tiff) {
  if (!starts_with(tiff, {"II*\0", 4}) && !starts_with(tiff, {"MM\0*", 4})) return 1;
  const TiffReader reader(tiff);
  const auto directory = reader.number(4, 4);
  if (!directory) return 1;
  const auto entries = reader.number(*directory, 2);
  for (uint32_t i = 0; entries && i < *entries; ++i) {
    const size_t entry = size_t(*directory) + 2 + size_t(i) * 12;
    const auto tag = reader.number(entry, 2);
    if (!tag) return 1;
    if (*tag != 0x0112 || reader.number(entry + 2, 2) != 3u) continue;
    const uint32_t value = reader.number(entry + 8, 2).value_or(1);
    return value >= 1 && value <= 8 ? int(value) : 1;
  }
  return 1;
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
