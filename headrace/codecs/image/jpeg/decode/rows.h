// SPDX-License-Identifier: Apache-2.0
// Converts rows of blocks to upsampled, color-converted rows of a window, for all our JPEG
// decoders. Equal to the slice of libjpeg-turbo's full decode with fancy upsampling.
//
// The caller walks the MCU rows [first_mcu_row(), end_mcu_row()) from top to bottom. For each it
// writes the samples of the blocks requested here to their positions (idct.h), and calls finish().
// Only a few sample rows are kept. Owns its buffers between images; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/headers/frame.h"
#include "headrace/codecs/image/jpeg/headers/plane.h"

namespace headrace {

class JpegRows {
 public:
  // REQUIRES: lay_out(frame) was true, the window is inside the image; frame and sink outlive the
  // decoding of the image. Delivers rows in ColorMode's channels, planar (RowBlock::step 1).
  void begin(const JpegFrame& frame, const Window& window, ColorMode color, RowSink* sink);

  // MCU rows that contain the window's rows and the neighbors that upsampling reads.
  int first_mcu_row() const { return first_mcu_row_; }
  int end_mcu_row() const { return end_mcu_row_; }
  // The block columns [first, end) of component c that are needed. `first` is a multiple of 4, so
  // that vectors of blocks and groups of a packed row begin together; `end` is not.
  struct Columns {
    int first = 0, end = 0;
    int count() const { return end - first; }
  };
  Columns columns(int c) const { return planes_[c].columns; }
  // True if block row y of component c (y counts from the image's top) contains needed samples.
  bool needs_block_row(int c, int y) const {
    return y >= planes_[c].top / 8 && y <= planes_[c].bottom / 8;
  }
  // Where the samples of block row y of the current MCU row go: 8 rows, `stride` bytes apart,
  // starting with block column columns(c).first. Room for count() rounded up to 4 blocks.
  struct Place {
    uint8_t* samples = nullptr;
    ptrdiff_t stride = 0;
  };
  Place place(int c, int y);
  // Must be called when all needed blocks of MCU row m are in place: delivers the rows that this
  // completes.
  void finish(int m);

  // Bytes that an image may need here; for ImageHeader::working_bytes.
  static size_t working_bytes(const JpegFrame& frame);
  size_t held_bytes() const { return memory_.capacity(); }
  void free() { memory_.free(); }

 private:
  // The conversion of rows of full width.
  enum class Conversion : uint8_t {
    kNone,         // delivered as decoded, or as upsampled
    kRgbFromYcc,   //
    kGrayFromYcc,  // via RGB
    kGrayFromRgb,
    kInks,  // four components: see convert_inks()
  };
  using Rows = std::array<const uint8_t*, 4>;
  using OutRows = std::array<uint8_t*, 4>;

  // The needed samples of a component: the current MCU row, preceded by the last row of the
  // previous one.
  struct Plane : JpegPlane {
    Columns columns;
    // How a row of samples becomes one of the window: the buffer's first column, the number of
    // samples, and how many of their outputs are left of the window.
    int from = 0, count = 0, surplus = 0;
    uint8_t* samples = nullptr;  // row 0 of the MCU row, column columns.first * 8
    ptrdiff_t stride = 0;

    size_t bytes() const;
  };

  static Plane plane_of(const JpegFrame& frame, const JpegComponent& component,
                        const Window& window);
  void place_buffers();
  void repeat_edges(Plane& plane, int m) const;
  void deliver(int y, int count, int m);
  const uint8_t* full_row(int c, int y, int m);
  void convert(const Rows& in, const OutRows& out);
  void convert_inks(const Rows& in, const OutRows& out);

  Window window_;
  JpegColor file_color_ = JpegColor::kYCbCr;
  ColorMode color_ = ColorMode::kRGB;
  Conversion conversion_ = Conversion::kNone;
  RowSink* sink_ = nullptr;
  int count_ = 0;                 // number of components
  int channels_ = 0;              // delivered
  bool in_place_ = false;         // rows are delivered where they were decoded
  bool reads_row_below_ = false;  // upsampling reads the row below, so a row may wait for the next
                                  // MCU row
  int mcu_height_ = 0;
  int first_mcu_row_ = 0, end_mcu_row_ = 0;
  int next_ = 0;  // row of the window
  std::array<Plane, 4> planes_;
  Buffer memory_;                             // memory of the arrays below
  std::array<uint8_t*, 4> wide_{};            // an upsampled row per component
  std::array<uint8_t*, 3> between_{};         // an RGB row, intermediate for gray
  std::array<uint8_t*, 4> delivered_{};       // the channels of the first row that is delivered
  ptrdiff_t row_ = 0, delivered_stride_ = 0;  // bytes per row: of one channel, and of all
};

}  // namespace headrace
