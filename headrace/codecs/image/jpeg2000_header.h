// SPDX-License-Identifier: Apache-2.0
// The header of a JPEG 2000 file: parsed here, because OpenJPEG allocates memory in proportion to
// the number of tiles and components in a header.
//
// Sources: ISO/IEC 15444-1, A.5.1 (SIZ), I.4 to I.5.3 (boxes of JP2).
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"

namespace headrace {

// The number of pieces in a JPEG 2000 codestream (ISO/IEC 15444-1, Annex B): OpenJPEG allocates
// memory for each tile, precinct and code-block, however few samples it has. Bounds-checked,
// allocates nothing; any thread may call it. From the SIZ marker: the image's area on the reference
// grid, and its tiles.
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

struct Jpeg2000Header {
  bool boxes = false;                                 // a JP2 file around the codestream
  uint32_t left = 0, top = 0, width = 0, height = 0;  // on the reference grid
  int components = 0, bits = 8;
  bool cmyk = false;
  size_t structure_bytes = 0;  // for tiles, precincts and code-blocks
};

// Errors are HR0345 to HR0348. If it succeeds, no component is subsampled, all have the same depth
// of at most 16 bits, and the file is long enough for its tiles and packets.
Result<Jpeg2000Header> read_jpeg2000_header(std::span<const uint8_t> file);

}  // namespace headrace
