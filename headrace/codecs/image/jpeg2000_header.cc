// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg2000_header.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/boxes.h"
#include "headrace/codecs/image/byte_order.h"

namespace headrace {
namespace {

constexpr std::string_view kJpeg2000 = "JPEG 2000";

// Name of a color space other than RGB or gray; null for those.
const char* unsupported_colors(std::span<const uint8_t> header, bool& cmyk) {
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

constexpr uint32_t kCod = 0xFF52, kCoc = 0xFF53, kSot = 0xFF90, kSod = 0xFF93;
constexpr int kMaxLevels = 32;

struct Exponents {
  int width = 15, height = 15;
  void lower(int other_width, int other_height) {
    width = std::min(width, other_width);
    height = std::min(height, other_height);
  }
};

// How a tile's component is divided, from COD and COC; the finest, if there are several.
struct CodingStyle {
  int layers = 1, levels = 0;
  Exponents block;
  std::array<Exponents, kMaxLevels + 1> precincts;  // by number of halvings of the resolution

  // `at`: offset of the number of levels; `own_precincts`: whether precinct sizes follow.
  void refine(std::span<const uint8_t> body, size_t at, bool own_precincts) {
    if (body.size() < at + 5) return;
    const int its_levels = std::min<int>(body[at], kMaxLevels);
    levels = std::max(levels, its_levels);
    block.lower((body[at + 1] & 15) + 2, (body[at + 2] & 15) + 2);
    for (int r = 0; own_precincts && r <= its_levels; ++r) {
      const size_t place = at + 5 + size_t(r);
      const int sizes = place < body.size() ? body[place] : 0;
      precincts[size_t(its_levels - r)].lower(sizes & 15, sizes >> 4);
    }
  }
};

// The finest style of the main header and of all tile parts.
CodingStyle finest_style(std::span<const uint8_t> stream, int components) {
  CodingStyle style;
  size_t at = 2, part = 0;  // the tile part's first byte
  uint64_t part_bytes = 0;
  while (at + 4 <= stream.size()) {
    const uint32_t marker = big_u16(stream, at);
    if (marker == kSod) {  // continue with the next part
      if (part_bytes > stream.size() - part || part + part_bytes <= at) return style;
      at = part + size_t(part_bytes);
      continue;
    }
    const size_t length = big_u16(stream, at + 2);
    if (marker < 0xFF00 || length < 2 || length > stream.size() - at - 2) return style;
    const std::span<const uint8_t> body = stream.subspan(at + 4, length - 2);
    if (marker == kSot && body.size() >= 6) {
      part = at;
      part_bytes = big_u32(body, 2);
    }
    if (marker == kCod && body.size() >= 5) {
      style.layers = std::max(style.layers, int(big_u16(body, 2)));
      style.refine(body, 5, body[0] & 1);
    }
    const size_t name = components < 257 ? 1 : 2;
    if (marker == kCoc && body.size() > name) style.refine(body, name + 1, body[name] & 1);
    at += 2 + length;
  }
  return style;
}

// Counts along one direction of one resolution, summed over all tiles. The product of the sums of
// both directions is the total count.
struct Along {
  double precincts = 0, low_blocks = 0, high_blocks = 0;
};

int64_t halved(int64_t value, int times) {  // rounded up
  return (value + (int64_t{1} << times) - 1) >> times;
}

int64_t cells(int64_t from, int64_t to, int exponent) {
  return from < to ? halved(to, exponent) - (from >> exponent) : 0;
}

Along count_along(const CodingStyle& style, int resolution, int precinct, int block, int64_t from,
                  int64_t to, int64_t first_tile, int64_t tile) {
  const int times = style.levels - resolution;
  const int in_bands = resolution > 0 ? 1 : 0;
  block = std::min(block, std::max(precinct - in_bands, 0));
  Along along;
  for (int64_t begin = first_tile; begin < to; begin += tile) {
    const int64_t low = std::max(from, begin), high = std::min(to, begin + tile);
    const int64_t low_there = halved(low, times), high_there = halved(high, times);
    along.precincts += double(cells(low_there, high_there, precinct));
    const int band = times + in_bands;
    along.low_blocks += double(cells(halved(low, band), halved(high, band), block));
    if (in_bands == 0) continue;
    const int64_t shift = int64_t{1} << times;  // samples of a high band
    along.high_blocks += double(cells(halved(std::max<int64_t>(low - shift, 0), band),
                                      halved(std::max<int64_t>(high - shift, 0), band), block));
  }
  return along;
}

// Pieces of one component, if all tiles had this style.
Jpeg2000Pieces pieces_of(const CodingStyle& style, const Jpeg2000Grid& grid) {
  Jpeg2000Pieces pieces;
  for (int r = 0; r <= style.levels; ++r) {
    const Exponents precinct = style.precincts[size_t(style.levels - r)];
    const Along x = count_along(style, r, precinct.width, style.block.width, grid.left, grid.right,
                                grid.tiles_left, grid.tile_width);
    const Along y = count_along(style, r, precinct.height, style.block.height, grid.top,
                                grid.bottom, grid.tiles_top, grid.tile_height);
    const double bands = r > 0 ? 3 : 1;
    pieces.packets += x.precincts * y.precincts * style.layers;
    pieces.precincts += x.precincts * y.precincts * bands;
    if (r == 0) {
      pieces.blocks += x.low_blocks * y.low_blocks;
    } else {
      pieces.blocks +=
          x.high_blocks * (y.low_blocks + y.high_blocks) + x.low_blocks * y.high_blocks;
    }
  }
  return pieces;
}

}  // namespace

Result<Jpeg2000Header> read_jpeg2000_header(std::span<const uint8_t> file) {
  constexpr size_t kSizBytes = 42;  // SOC, and the SIZ marker up to its components
  Jpeg2000Header header;
  std::span<const uint8_t> stream = file;
  if (file.size() < 2) return truncated_image(kJpeg2000, file.size());
  const char* unread = nullptr;
  if (file[0] != 0xFF) {
    header.boxes = true;
    stream = {};
    each_box(file, [&](uint32_t type, std::span<const uint8_t> content) {
      if (type == box_named("jp2h")) unread = unsupported_colors(content, header.cmyk);
      if (type == box_named("jp2c")) stream = content;
      return stream.empty();
    });
  }
  if (unread) return unsupported_image(kJpeg2000, unread);
  if (stream.size() < kSizBytes) return truncated_image(kJpeg2000, file.size());
  if (big_u32(stream, 0) != 0xFF4FFF51) return corrupt_image(kJpeg2000, "no SIZ marker");
  const auto at = [&](size_t number) { return big_u32(stream, 8 + 4 * number); };
  const uint32_t right = at(0), bottom = at(1), tile_width = at(4), tile_height = at(5);
  const uint32_t tiles_left = at(6), tiles_top = at(7);
  header.left = at(2);
  header.top = at(3);
  header.components = int(big_u16(stream, 40));
  if (right > INT32_MAX || bottom > INT32_MAX || header.left >= right || header.top >= bottom ||
      tile_width == 0 || tile_height == 0 || tiles_left > header.left || tiles_top > header.top ||
      header.components == 0) {
    return corrupt_image(kJpeg2000, "its sizes contradict each other");
  }
  header.width = right - header.left;
  header.height = bottom - header.top;
  if (header.components > 4) {
    return unsupported_image(kJpeg2000, "of " + std::to_string(header.components) + " channels");
  }
  if (stream.size() < kSizBytes + 3 * size_t(header.components)) {
    return truncated_image(kJpeg2000, file.size());
  }
  const uint8_t depth = stream[kSizBytes];
  for (int c = 0; c < header.components; ++c) {
    const uint8_t* const component = stream.data() + kSizBytes + 3 * size_t(c);
    if (component[0] != depth || component[1] != 1 || component[2] != 1) {
      return unsupported_image(kJpeg2000, "with channels that differ in depth or are subsampled");
    }
  }
  header.bits = (depth & 0x7F) + 1;
  if (depth & 0x80) return unsupported_image(kJpeg2000, "of signed integers");
  if (header.bits > 16) {
    return unsupported_image(kJpeg2000, "of " + std::to_string(header.bits) + " bits");
  }
  if (header.cmyk && header.components != 4) {
    return corrupt_image(kJpeg2000, "CMYK of fewer than four channels");
  }
  // A tile takes at least 14 bytes, SOT and SOD; a packet at least one.
  constexpr double kMaxTiles = 65535, kTileBytes = 14;
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
  if (tiles > kMaxTiles) return corrupt_image(kJpeg2000, "more tiles than allowed");
  if (tiles * kTileBytes > bytes) return truncated_image(kJpeg2000, file.size());
  const Jpeg2000Pieces pieces = count_jpeg2000_pieces(stream, grid);
  // The count assumes that all tiles are like the finest one.
  if (pieces.packets > 64 * bytes) return truncated_image(kJpeg2000, file.size());
  // 4 x 4 samples are the smallest code-block; precincts may be smaller, but that does not occur in
  // practice.
  constexpr double kSmall = double{64 << 20}, kMaxPerSample = 100;
  const double samples = double(header.width) * header.height * header.components;
  if (pieces.bytes > std::max(kSmall, samples * kMaxPerSample)) return too_large_image(kJpeg2000);
  header.structure_bytes = size_t(pieces.bytes);
  return header;
}

double count_jpeg2000_tiles(const Jpeg2000Grid& grid) {
  const auto count = [](int64_t length, int64_t tile) {
    return double((length + tile - 1) / tile);
  };
  return count(grid.right - grid.tiles_left, grid.tile_width) *
         count(grid.bottom - grid.tiles_top, grid.tile_height);
}

Jpeg2000Pieces count_jpeg2000_pieces(std::span<const uint8_t> stream, const Jpeg2000Grid& grid) {
  // Sizes of OpenJPEG 2.5's structures on 64-bit machines, rounded up.
  constexpr double kTileBytes = 8000, kTileComponentBytes = 1400, kPrecinctBytes = 256,
                   kBlockBytes = 400;
  Jpeg2000Pieces most = pieces_of(finest_style(stream, grid.components), grid);
  most.precincts *= grid.components;
  most.blocks *= grid.components;
  most.packets *= grid.components;
  // Tiles are decoded one at a time.
  const double tiles = count_jpeg2000_tiles(grid);
  const double of_a_tile = double(grid.tile_width) * double(grid.tile_height) /
                           (double(grid.right - grid.left) * double(grid.bottom - grid.top));
  most.bytes = tiles * (kTileBytes + kTileComponentBytes * grid.components) +
               (most.precincts * kPrecinctBytes + most.blocks * kBlockBytes) *
                   std::min(tiles > 1 ? of_a_tile : 1.0, 1.0);
  return most;
}

}  // namespace headrace
