// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg2000_header.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "headrace/codecs/image/boxes.h"
#include "headrace/codecs/image/byte_order.h"
#include "headrace/codecs/image/jpeg2000_blocks.h"
#include "headrace/codecs/image/picture_errors.h"

namespace headrace {
namespace {

constexpr std::string_view kJpeg2000 = "JPEG 2000";

// Name of a color space other than RGB or gray; null for those.
const char* unread_colors(std::span<const uint8_t> header, bool& cmyk) {
  const char* unread = nullptr;
  bool seen = false;
  each_box(header, [&](uint32_t type, std::span<const uint8_t> content) {
    if (type == box_named("pclr")) unread = "with a palette";
    if (type == box_named("colr") && content.size() >= 7 && content[0] == 1 && !seen) {
      constexpr uint32_t kCmyk = 12, kRgb = 16, kGray = 17;
      const uint32_t space = big_u32(content, 3);
      seen = true;
      cmyk = space == kCmyk;
      if (space != kRgb && space != kGray && space != kCmyk) unread = "of YCbCr or another space";
    }
    return true;
  });
  return unread;
}

}  // namespace

Result<Jpeg2000Header> read_jpeg2000_header(std::span<const uint8_t> file) {
  constexpr size_t kSizBytes = 42;  // SOC, and the SIZ marker up to its components
  Jpeg2000Header header;
  std::span<const uint8_t> stream = file;
  if (file.size() < 2) return truncated_picture(kJpeg2000, file.size());
  const char* unread = nullptr;
  if (file[0] != 0xFF) {
    header.boxes = true;
    stream = {};
    each_box(file, [&](uint32_t type, std::span<const uint8_t> content) {
      if (type == box_named("jp2h")) unread = unread_colors(content, header.cmyk);
      if (type == box_named("jp2c")) stream = content;
      return stream.empty();
    });
  }
  if (unread) return unread_picture(kJpeg2000, unread);
  if (stream.size() < kSizBytes) return truncated_picture(kJpeg2000, file.size());
  if (big_u32(stream, 0) != 0xFF4FFF51) return corrupt_picture(kJpeg2000, "no SIZ marker");
  const auto at = [&](size_t number) { return big_u32(stream, 8 + 4 * number); };
  const uint32_t right = at(0), bottom = at(1), tile_width = at(4), tile_height = at(5);
  const uint32_t tiles_left = at(6), tiles_top = at(7);
  header.left = at(2);
  header.top = at(3);
  header.components = int(big_u16(stream, 40));
  if (right > INT32_MAX || bottom > INT32_MAX || header.left >= right || header.top >= bottom ||
      tile_width == 0 || tile_height == 0 || tiles_left > header.left || tiles_top > header.top ||
      header.components == 0) {
    return corrupt_picture(kJpeg2000, "its sizes contradict each other");
  }
  header.width = right - header.left;
  header.height = bottom - header.top;
  if (header.components > 4) {
    return unread_picture(kJpeg2000, "of " + std::to_string(header.components) + " channels");
  }
  if (stream.size() < kSizBytes + 3 * size_t(header.components)) {
    return truncated_picture(kJpeg2000, file.size());
  }
  const uint8_t depth = stream[kSizBytes];
  for (int c = 0; c < header.components; ++c) {
    const uint8_t* const component = stream.data() + kSizBytes + 3 * size_t(c);
    if (component[0] != depth || component[1] != 1 || component[2] != 1) {
      return unread_picture(kJpeg2000, "with channels that differ in depth or are subsampled");
    }
  }
  header.bits = (depth & 0x7F) + 1;
  if (depth & 0x80) return unread_picture(kJpeg2000, "of signed integers");
  if (header.bits > 16) {
    return unread_picture(kJpeg2000, "of " + std::to_string(header.bits) + " bits");
  }
  if (header.cmyk && header.components != 4) {
    return corrupt_picture(kJpeg2000, "CMYK of fewer than four channels");
  }
  // A tile takes at least 14 bytes, SOT and SOD; a packet at least one.
  constexpr double kMostTiles = 65535, kTileBytes = 14;
  const double bytes = double(stream.size());
  const Jpeg2000Grid grid{.left = header.left,
                          .top = header.top,
                          .right = right,
                          .bottom = bottom,
                          .tiles_left = tiles_left,
                          .tiles_top = tiles_top,
                          .tile_width = tile_width,
                          .tile_height = tile_height,
                          .components = header.components};
  const double tiles = count_jpeg2000_tiles(grid);
  if (tiles > kMostTiles) return corrupt_picture(kJpeg2000, "more tiles than allowed");
  if (tiles * kTileBytes > bytes) return truncated_picture(kJpeg2000, file.size());
  const Jpeg2000Pieces pieces = count_jpeg2000_pieces(stream, grid);
  // The count assumes that all tiles are like the finest one.
  if (pieces.packets > 64 * bytes) return truncated_picture(kJpeg2000, file.size());
  // 4 x 4 samples are the smallest code-block; precincts may be smaller, but that does not occur in
  // practice.
  constexpr double kSmall = double{64 << 20}, kMostASample = 100;
  const double samples = double(header.width) * header.height * header.components;
  if (pieces.bytes > std::max(kSmall, samples * kMostASample)) return too_large_picture(kJpeg2000);
  header.structure_bytes = size_t(pieces.bytes);
  return header;
}

}  // namespace headrace
