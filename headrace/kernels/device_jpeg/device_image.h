// SPDX-License-Identifier: Apache-2.0
// A batch of JPEG images as a device decodes them: plain structs, made on the host from headers,
// row indexes and windows (codecs/image/jpeg/device/batch.h), copied unchanged, and used by the
// kernels of this folder, which run in this order:
//
//   MakeTables       a thread per entry             codes -> decoding tables
//   ClearWords       a thread per 16 bytes          clears the error flags
//   WalkRows         a thread per segment of MCUs   bits -> coefficients, DC differences
//   SumDc            one per segment and component  -> DC values
//   TransformBlocks  a thread per block             -> samples
//   ColorPixels      a thread per 8 pixels          -> rows of the window
//
// Kernels report an error in an image in the image's flag; the image is then decoded on the
// CPU. Every loop is bounded by the host's numbers, for any bytes.
#pragma once

#include <cstdint>

#include "headrace/kernels/jpeg/upsample.h"

namespace headrace {

// A Huffman code, from which MakeTables makes a table.
struct DeviceCode {
  // For the next 16 bits of a stream: codes of `length` lie below limit[length], and
  // offset[length] + (bits >> (16 - length)) numbers their symbols.
  uint32_t limit[17];
  int32_t offset[17];
  // For codes longer than kFirstBits: the first of the first-level entries that lead to a second
  // level, and how many lead to one of n bits, in code order.
  uint32_t first_long;
  uint32_t long_entries[8];
  uint8_t symbols[256];
  uint32_t is_dc;
};

// The Huffman decoding tables of an image, for two sets of codes: DC of the first set and of the
// second, AC of the first set and of the second.
struct WalkTables {
  static constexpr int kFirstBits = 9, kFirstSize = 1 << kFirstBits;
  // Total second-level entries: twice as many as the most unusual of 200 photos needs.
  static constexpr int kSecondSize = 320, kSize = kFirstSize + kSecondSize;
  static constexpr int kTableBytes = kSize * 4;

  // The position of a coefficient in its block, by the count of coefficients up to it. Damaged
  // streams can reach 128, so that entry exists, too. First member, so that with tables at
  // multiples of 256 the low address bits are the count.
  uint8_t place[144];
  uint32_t entries[4][kSize];  // walk_entry.h
};
constexpr int kWalkTableWords = sizeof(WalkTables) / 4;

// A component of an image, as far as the window needs it.
struct DevicePlane {
  int32_t first_column, columns, first_row, rows;  // blocks that are transformed
  int32_t first_block;                             // of the component within an MCU
  int32_t h_shift, v_shift;                        // 1 << h_shift of its blocks are adjacent in an
                                                   // MCU
  int32_t quantization;                            // index of its quantization table
  int32_t width, height;                           // size of the component in samples
  Upsampling upsampling;
  int32_t h_ratio_shift, v_ratio_shift;  // ratio of the image's size to the component's
  int32_t stride;                        // distance of rows in bytes, a multiple of 8
  int64_t samples;                       // offset of the sample of block (0, 0), a multiple of 16
};

// How the components' samples are converted to pixels.
enum class DeviceColor : uint8_t { kUnconverted, kRgbFromYcc, kGrayFromYcc, kGrayFromRgb };

// The first two kinds (YCbCr to RGB with full-size chroma or 4:2:0) have a specialized kernel that
// needs fewer resources.
enum class ColorKind : uint8_t { kPlain, kDoubled, kAny };
constexpr int kColorKinds = 3;

struct DeviceImage {
  int32_t code[4];   // indices of its codes, in the order of WalkTables::entries
  uint32_t pattern;  // one bit per block of an MCU, lowest first: does it use the second set?
  int32_t blocks;    // blocks per MCU, 1 to 10
  int32_t first_mcu_row, mcu_columns;  // decoded MCU columns, the same number in each row
  int64_t first_block;                 // first block of MCU column 0 in the batch's coefficients
  int64_t first_word;                  // of its bits in the batch's streams
  int32_t x, y, width, height;         // the window
  // The window's rows, one plane per channel. A row begins `margin` bytes before the window's first
  // column, so that eight pixels form two aligned words; strides are multiples of 8.
  int64_t out;
  int32_t out_stride, out_plane, margin;
  int32_t components, channels;
  DeviceColor color;
  DevicePlane plane[3];
};

// A segment of MCUs in one row, which ends at the row's end, at the row index's next entry or at a
// restart marker. Bit positions are in the image's stream, most significant bit first.
struct RowJob {
  // Begins at this bit, and must end at `end` or up to `slack` bits before. kPaddingWords more
  // words are readable after the word that holds bit `end`.
  static constexpr uint32_t kPaddingWords = 3;
  uint32_t begin, end, slack;
  uint32_t first_block;  // of its coefficients, from DeviceImage::first_block
  uint16_t mcus;
  int16_t predictor[3];      // DC predictors before it
  int16_t end_predictor[3];  // if slack is 0, the DC values after it
};
static_assert(sizeof(RowJob) == 32);

// Segments of one image that are decoded by one block of threads, which shares the tables.
struct WalkGroup {
  static constexpr int kMax = 64;
  uint32_t image, first_job, jobs;  // numbers in the batch
};

// Up to 32 neighbors, one per thread: blocks of a component, or groups of eight pixels of a window,
// numbered row by row.
struct PieceJob {
  uint32_t image, component, first;
};
constexpr int kPiece = 32;

}  // namespace headrace
