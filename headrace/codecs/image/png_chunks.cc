// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/png_chunks.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/text.h"
#include "headrace/codecs/image/byte_order.h"
#include "headrace/codecs/image/exif.h"
#include "headrace/storage/inflate.h"

namespace headrace {
namespace {

constexpr size_t kSignatureBytes = 8;
constexpr size_t kChunkHeadBytes = 8;  // length and type
constexpr size_t kChunkCrcBytes = 4;

using Bytes = std::span<const uint8_t>;

// A chunk tEXt, zTXt or iTXt.
struct PngText {
  std::string_view keyword;
  bool compressed = false;
  Bytes text;
};

// The bytes before the next zero; removes both from `rest`.
Bytes before_zero(Bytes& rest) {
  const auto end = std::ranges::find(rest, uint8_t{0});
  const size_t length = size_t(end - rest.begin());
  const Bytes out = rest.first(length);
  rest = rest.subspan(std::min(length + 1, rest.size()));
  return out;
}

PngText text_of(Bytes type, Bytes rest) {
  const Bytes keyword = before_zero(rest);
  PngText out{.keyword = text_from_bytes(keyword), .text = {}};
  if (has_text(type, "tEXt")) {
    out.text = rest;
  } else if (has_text(type, "zTXt")) {
    if (rest.empty() || rest[0] != 0) return {};
    out.compressed = true;
    out.text = rest.subspan(1);
  } else {
    if (rest.size() < 2 || (rest[0] != 0 && rest[1] != 0)) return {};
    out.compressed = rest[0] != 0;
    rest = rest.subspan(2);
    before_zero(rest);  // a language
    before_zero(rest);  // the keyword in it
    out.text = rest;
  }
  return out;
}

// The text itself, in `memory` if it was compressed; empty if it is damaged, or longer than
// Pillow's decompression limit.
Bytes plain(const PngText& text, Buffer& memory) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 20;
  if (!text.compressed) return text.text;
  const bool good = bool(
      inflate_bytes(text.text, DeflateWrap::kZlib, InflateLimits{.max_bytes = kMostBytes}, memory));
  return good ? Bytes(memory.bytes()) : Bytes();
}

// The text has three lines (an empty one, "exif", a length), then hexadecimal digits.
int orientation_of_raw_profile(Bytes text) {
  for (int line = 0; line < 3; ++line) {
    const auto end = std::ranges::find(text, uint8_t{'\n'});
    if (end == text.end()) return 0;
    text = text.subspan(size_t(end - text.begin()) + 1);
  }
  std::vector<uint8_t> exif;
  int high = -1;
  for (const uint8_t c : text) {
    const bool digit = c >= '0' && c <= '9';
    const int letter = c | 0x20;
    if (!digit && (letter < 'a' || letter > 'f')) continue;
    const int value = digit ? c - '0' : letter - 'a' + 10;
    if (high >= 0) exif.push_back(uint8_t(high << 4 | value));
    high = high >= 0 ? -1 : value;
  }
  return orientation_of_exif_chunk(exif);
}

}  // namespace

int png_orientation(std::span<const uint8_t> file) {
  std::optional<int> by_exif, by_raw_profile, by_xmp;  // 0: not specified
  Buffer inflated;
  bool after_pixels = false;
  size_t at = kSignatureBytes;
  while (at <= file.size() && file.size() - at >= kChunkHeadBytes) {
    const Bytes chunk = file.subspan(at);
    const size_t length = big_u32(chunk, 0);
    if (length > chunk.size() - kChunkHeadBytes) break;
    const Bytes type = chunk.subspan(4), content = chunk.subspan(kChunkHeadBytes, length);
    if (has_text(type, "IEND") || (after_pixels && has_text(type, "fcTL"))) break;
    after_pixels |= has_text(type, "IDAT");
    if (has_text(type, "eXIf")) by_exif = orientation_of_exif_chunk(content);
    if (has_text(type, "tEXt") || has_text(type, "zTXt") || has_text(type, "iTXt")) {
      const PngText text = text_of(type, content);
      if (text.keyword == "exif" && has_text(type, "tEXt")) {
        by_exif = orientation_of_exif_chunk(text.text);
      } else if (text.keyword == "Raw profile type exif") {
        by_raw_profile = orientation_of_raw_profile(plain(text, inflated));
      } else if (text.keyword == "XML:com.adobe.xmp") {
        by_xmp = orientation_of_xmp(plain(text, inflated));
      }
    }
    at += kChunkHeadBytes + length + kChunkCrcBytes;
  }
  const int exif = by_exif ? *by_exif : by_raw_profile.value_or(0);
  return exif ? exif : std::max(by_xmp.value_or(0), 1);
}

}  // namespace headrace
