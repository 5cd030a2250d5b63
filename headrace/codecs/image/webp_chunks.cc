// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/webp_chunks.h"

#include <algorithm>
#include <cstddef>

#include "headrace/base/text.h"
#include "headrace/codecs/image/byte_order.h"
#include "headrace/codecs/image/exif.h"

namespace headrace {
namespace {

constexpr size_t kRiffHeadBytes = 12, kChunkHead = 8;

// Calls visit(name, content) for each whole chunk until it answers false.
template <class Visit>
void each_chunk(std::span<const uint8_t> file, const Visit& visit) {
  size_t at = kRiffHeadBytes;
  while (at <= file.size() && file.size() - at >= kChunkHead) {
    const std::span<const uint8_t> chunk = file.subspan(at);
    const size_t length = little_u32(chunk, 4);
    if (length > chunk.size() - kChunkHead) return;
    if (!visit(chunk.first(4), chunk.subspan(kChunkHead, length))) return;
    at += kChunkHead + length + length % 2;
  }
}

}  // namespace

WebpFrame first_webp_frame(std::span<const uint8_t> file) {
  constexpr size_t kFrameHead = 16;
  WebpFrame frame;
  each_chunk(file, [&](std::span<const uint8_t> name, std::span<const uint8_t> content) {
    if (!has_text(name, "ANMF")) return true;
    if (content.size() < kFrameHead) return false;
    frame.x = int(2 * little_u24(content, 0));
    frame.y = int(2 * little_u24(content, 3));
    frame.width = int(1 + little_u24(content, 6));
    frame.height = int(1 + little_u24(content, 9));
    frame.bytes = content.subspan(kFrameHead);
    return false;
  });
  return frame;
}

int webp_orientation(std::span<const uint8_t> file) {
  int by_exif = 0, by_xmp = 0;  // 0: not there
  each_chunk(file, [&](std::span<const uint8_t> name, std::span<const uint8_t> content) {
    if (has_text(name, "EXIF") && by_exif == 0) by_exif = orientation_of_exif_chunk(content);
    if (has_text(name, "XMP ") && by_xmp == 0) by_xmp = orientation_of_xmp(content);
    return true;
  });
  return by_exif ? by_exif : std::max(by_xmp, 1);
}

}  // namespace headrace
