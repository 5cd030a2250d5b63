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
