// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg2000_blocks.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "headrace/codecs/image/byte_order.h"

namespace headrace {
namespace {

constexpr uint32_t kCod = 0xFF52, kCoc = 0xFF53, kSot = 0xFF90, kSod = 0xFF93;
constexpr int kMostLevels = 32;

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
  std::array<Exponents, kMostLevels + 1> precincts;  // by number of halvings of the resolution

  // `at`: offset of the number of levels; `own_precincts`: whether precinct sizes follow.
  void refine(std::span<const uint8_t> body, size_t at, bool own_precincts) {
    if (body.size() < at + 5) return;
    const int its_levels = std::min<int>(body[at], kMostLevels);
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
