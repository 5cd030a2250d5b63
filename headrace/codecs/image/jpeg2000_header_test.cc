// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg2000_header.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace headrace {
namespace {

using Bytes = std::vector<uint8_t>;

struct Style {
  int layers = 1, levels = 0, block_width = 6, block_height = 6;  // exponents
  std::vector<std::pair<int, int>> precincts = {};                // lowest resolution first
};

Bytes coding_style(const Style& style) {
  Bytes out = {0xFF, 0x52, 0, uint8_t(12 + style.precincts.size()),
               uint8_t(!style.precincts.empty())};
  out.insert(out.end(), {0, uint8_t(style.layers >> 8), uint8_t(style.layers), 0});
  out.insert(out.end(), {uint8_t(style.levels), uint8_t(style.block_width - 2),
                         uint8_t(style.block_height - 2), 0, 1});
  for (const auto& [width, height] : style.precincts) out.push_back(uint8_t(width | height << 4));
  return out;
}

Bytes stream_of(const Style& style) {
  Bytes out = {0xFF, 0x4F};
  const Bytes cod = coding_style(style);
  out.insert(out.end(), cod.begin(), cod.end());
  return out;
}

int64_t up(int64_t value, int64_t by) { return value <= 0 ? 0 : (value + by - 1) / by; }

// Counts sample by sample: each is in a precinct, and its coefficient in a code-block (B.5 to B.7).
Jpeg2000Pieces counted(const Style& style, const Jpeg2000Grid& grid) {
  Jpeg2000Pieces pieces;
  for (int64_t y = grid.tiles_top; y < grid.bottom; y += grid.tile_height) {
    for (int64_t x = grid.tiles_left; x < grid.right; x += grid.tile_width) {
      const int64_t x0 = std::max(x, grid.left), x1 = std::min(x + grid.tile_width, grid.right);
      const int64_t y0 = std::max(y, grid.top), y1 = std::min(y + grid.tile_height, grid.bottom);
      for (int r = 0; r <= style.levels; ++r) {
        const auto [px, py] =
            style.precincts.empty() ? std::pair{15, 15} : style.precincts[size_t(r)];
        const int64_t scale = int64_t{1} << (style.levels - r);
        std::set<std::pair<int64_t, int64_t>> precincts;
        for (int64_t v = up(y0, scale); v < up(y1, scale); ++v) {
          for (int64_t u = up(x0, scale); u < up(x1, scale); ++u)
            precincts.insert({u >> px, v >> py});
        }
        const int in_bands = r > 0;
        const int bw = std::min(style.block_width, std::max(px - in_bands, 0));
        const int bh = std::min(style.block_height, std::max(py - in_bands, 0));
        const int64_t band_scale = scale << in_bands;
        for (int band = in_bands; band < 1 + 3 * in_bands; ++band) {
          const int64_t dx = band & 1 ? scale : 0, dy = band & 2 ? scale : 0;
          std::set<std::pair<int64_t, int64_t>> blocks;
          for (int64_t v = up(y0 - dy, band_scale); v < up(y1 - dy, band_scale); ++v) {
            for (int64_t u = up(x0 - dx, band_scale); u < up(x1 - dx, band_scale); ++u) {
              blocks.insert({u >> bw, v >> bh});
            }
          }
          pieces.blocks += double(blocks.size() * size_t(grid.components));
        }
        const double there = double(precincts.size() * size_t(grid.components));
        pieces.precincts += there * (r > 0 ? 3 : 1);
        pieces.packets += there * style.layers;
      }
    }
  }
  return pieces;
}

TEST(Jpeg2000Blocks, BlocksAreDividedAsInTheStandard) {
  std::mt19937 random(3);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int i = 0; i < 300; ++i) {
    Jpeg2000Grid grid;
    grid.left = pick(0, 30);
    grid.top = pick(0, 30);
    grid.right = grid.left + pick(1, 90);
    grid.bottom = grid.top + pick(1, 90);
    grid.tiles_left = pick(0, int(grid.left));
    grid.tiles_top = pick(0, int(grid.top));
    // The first tile has samples.
    grid.tile_width = grid.left - grid.tiles_left + pick(1, 60);
    grid.tile_height = grid.top - grid.tiles_top + pick(1, 60);
    grid.components = pick(1, 4);
    Style style{.layers = pick(1, 300), .levels = pick(0, 5)};
    style.block_width = pick(2, 6);
    style.block_height = pick(2, 6);
    for (int r = 0; i % 3 && r <= style.levels; ++r) {
      style.precincts.push_back({pick(r > 0, 8), pick(r > 0, 8)});
    }
    const Jpeg2000Pieces got = count_jpeg2000_pieces(stream_of(style), grid);
    const Jpeg2000Pieces expected = counted(style, grid);
    EXPECT_EQ(got.blocks, expected.blocks) << i;
    EXPECT_EQ(got.precincts, expected.precincts) << i;
    EXPECT_EQ(got.packets, expected.packets) << i;
  }
}

TEST(Jpeg2000Blocks, TheFinestStyleOfAllTilePartsIsUsed) {
  const Jpeg2000Grid grid{.right = 512, .bottom = 512, .tile_width = 256, .tile_height = 256};
  const Style coarse{.levels = 2}, fine{.levels = 2, .block_width = 2, .block_height = 2};
  Bytes stream = stream_of(coarse);
  const double before = count_jpeg2000_pieces(stream, grid).blocks;
  const Bytes style = coding_style(fine);
  for (int tile = 0; tile < 2; ++tile) {  // SOT, in the second one COD, SOD
    const uint8_t bytes = uint8_t(14 + (tile ? style.size() : 0));
    stream.insert(stream.end(), {0xFF, 0x90, 0, 10, 0, uint8_t(tile), 0, 0, 0, bytes, 0, 1});
    if (tile) stream.insert(stream.end(), style.begin(), style.end());
    stream.insert(stream.end(), {0xFF, 0x93});
  }
  EXPECT_EQ(count_jpeg2000_pieces(stream, grid).blocks,
            count_jpeg2000_pieces(stream_of(fine), grid).blocks);
  EXPECT_GT(count_jpeg2000_pieces(stream, grid).blocks, 100 * before);
}

}  // namespace
}  // namespace headrace
