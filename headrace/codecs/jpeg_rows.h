// SPDX-License-Identifier: Apache-2.0
// Rows of blocks -> upsampled, converted rows of a window: what every JPEG decoder of ours does
// once it has coefficients. Equal to the slice of libjpeg-turbo's full decode with fancy
// upsampling.
//
// The caller walks the MCU rows [first_mcu_row(), end_mcu_row()) from top to bottom. For each it
// writes the samples of the blocks that are named here to where they belong (idct.h), and calls
// finish(). Only a few rows of samples are kept. Owns its buffers between pictures; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/jpeg_frame.h"

namespace headrace {

class JpegRows {
 public:
  // REQUIRES: lay_out(frame) was true, the window lies inside the picture; frame and sink outlive
  // the picture. Delivers rows in ColorMode's channels, planar (RowBlock::step 1).
  void begin(const JpegFrame& frame, const Window& window, ColorMode color, RowSink* sink);

  // MCU rows that hold the window's rows and the neighbours that upsampling looks at.
  int first_mcu_row() const;
  int end_mcu_row() const;
  // The block columns [first, end) of component c that are needed. `first` is a multiple of 4, so
  // that vectors of blocks and groups of a packed row begin together; `end` is not.
  struct Columns {
    int first = 0, end = 0;
    int count() const { return end - first; }
  };
  Columns columns(int c) const;
  // True when block row y of component c (y counts from the picture's top) holds needed samples.
  bool needs_block_row(int c, int y) const;
  // Where block row y of the current MCU row has its samples: 8 rows, `stride` bytes apart, the
  // first sample that of block columns(c).first. Room for count() rounded up to 4 blocks.
  struct Place {
    uint8_t* samples = nullptr;
    ptrdiff_t stride = 0;
  };
  Place place(int c, int y);
  // All needed blocks of MCU row m are in place: delivers the rows that this completes.
  void finish(int m);

  // Bytes that a picture may need here; for ImageHeader::working_bytes.
  static size_t working_bytes(const JpegFrame& frame);
  size_t held_bytes() const;
  void free();
};

}  // namespace headrace
