// SPDX-License-Identifier: Apache-2.0
// The number of pieces in a JPEG 2000 codestream (ISO/IEC 15444-1, Annex B): OpenJPEG allocates
// memory for each tile, precinct and code-block, however few samples it has. Bounds-checked,
// allocates nothing; any thread may call it.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// From the SIZ marker: the picture's area on the reference grid, and its tiles.
struct Jpeg2000Grid {
  int64_t left = 0, top = 0, right = 0, bottom = 0;
  int64_t tiles_left = 0, tiles_top = 0, tile_width = 1, tile_height = 1;
  int components = 1;
};

double count_jpeg2000_tiles(const Jpeg2000Grid& grid);

// Numbers of pieces; upper bounds if tiles or components have different coding styles.
struct Jpeg2000Pieces {
  double precincts = 0, blocks = 0, packets = 0;
  double bytes = 0;  // OpenJPEG's memory for them, and for the tiles
};
// `stream` begins with SOC. REQUIRES: at most 65535 tiles, the limit of a file.
Jpeg2000Pieces count_jpeg2000_pieces(std::span<const uint8_t> stream, const Jpeg2000Grid& grid);

}  // namespace headrace
