// SPDX-License-Identifier: Apache-2.0
// A batch of JPEG pictures as a device decodes them: plain structs, made on the host from headers,
// row indexes and windows (codecs/image/jpeg/device/batch.h), copied over as they are, and
// named by the kernels of this folder, which run in this order:
//
//   MakeTables       a thread an entry            codes -> tables of the walk
//   ClearWords       a thread 16 bytes            no picture is refused
//   WalkRows         a thread a stretch of MCUs   bits -> coefficients, DC differences
//   SumDc            a thread a component of one  -> DC values
//   TransformBlocks  a thread a block             -> samples
//   ColorPixels      a thread eight pixels        -> rows of the window
//
// Kernels report an error in a picture in the picture's flag; the picture is then
// decoded on the CPU. Every loop is bounded by numbers of the host's, whatever the bytes are.
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
  // Codes of more than kFirstBits bits: the first of the first level's entries that lead to a
  // second level, and how many lead to one of n bits, which is in the order of the codes.
  uint32_t first_long;
  uint32_t long_entries[8];
  uint8_t symbols[256];
  uint32_t is_dc;
};

// Tables of a picture's walk. Four, for two sets of codes: DC of the first set and of the second,
// AC of the first set and of the second.
struct WalkTables {
  static constexpr int kFirstBits = 9, kFirstSize = 1 << kFirstBits;
  // Entries of the second levels together: twice those of the most unusual table of 200 photos.
  static constexpr int kSecondSize = 320, kSize = kFirstSize + kSecondSize;
  static constexpr int kTableBytes = kSize * 4;

  // Where a coefficient belongs in its block, by how many there are up to it; what damaged streams
  // reach, 128, has a place, too. First: so its addresses are the counts where tables begin at
  // multiples of 256.
  uint8_t place[144];
  uint32_t entries[4][kSize];  // walk_entry.h
};
constexpr int kWalkTableWords = sizeof(WalkTables) / 4;

// A component of a picture, as far as its window takes it.
struct DevicePlane {
  int32_t first_column, columns, first_row, rows;  // blocks that are transformed
  int32_t first_block;                             // of the component, inside an MCU
  int32_t h_shift, v_shift;                        // 1 << h_shift blocks of it stand side by side
  int32_t quantization;                            // number of its table
  int32_t width, height;                           // samples that exist
  Upsampling upsampling;
  int32_t h_ratio_shift, v_ratio_shift;  // the picture's size to the component's
  int32_t stride;                        // of its samples, a multiple of 8
  int64_t samples;                       // offset, a multiple of 16; of block (0, 0) of the above
};

// The conversion of the components' samples.
enum class DeviceColor : uint8_t { kAsTheyAre, kRgbFromYcc, kGrayFromYcc, kGrayFromRgb };

// Pictures of the first two kinds, YCbCr to RGB with chroma as large as luma or half as large in
// both directions, have a kernel of their own, which asks less.
enum class ColorKind : uint8_t { kPlain, kDoubled, kAny };
constexpr int kColorKinds = 3;

struct DevicePicture {
  int32_t code[4];   // numbers of its codes, in the order of WalkTables::entries
  uint32_t pattern;  // a bit for each block of an MCU, from the lowest: is it of the second set?
  int32_t blocks;    // of an MCU, 1 to 10
  int32_t first_mcu_row, mcu_columns;  // walked columns, the same number in each row
  int64_t first_block;                 // of MCU column 0 in the batch's coefficients
  int64_t first_word;                  // of its bits in the batch's streams
  int32_t x, y, width, height;         // the window
  // The window's rows: a plane a channel. A row begins `margin` bytes before the window's first
  // column, so that eight pixels of the picture make two aligned words; strides are multiples of 8.
  int64_t out;
  int32_t out_stride, out_plane, margin;
  int32_t components, channels;
  DeviceColor color;
  DevicePlane plane[3];
};

// A stretch of MCUs of one row: those up to its end, to the next entry of the row index or to a
// restart marker. Bits are those of the picture's stream, the highest of a byte first.
struct RowJob {
  // It begins at one bit, and has to end at another, or up to `slack` bits before that. Of the
  // stream there are kWordsBehind words more after the one that holds bit `end`.
  static constexpr uint32_t kWordsBehind = 3;
  uint32_t begin, end, slack;
  uint32_t first_block;  // of its coefficients, from DevicePicture::first_block
  uint16_t mcus;
  int16_t predictor[3];      // DC values before it
  int16_t end_predictor[3];  // without slack, those after it
};
static_assert(sizeof(RowJob) == 32);

// Stretches of one picture that are walked by one block of threads, which share its tables.
struct WalkGroup {
  static constexpr int kMost = 64;
  uint32_t picture, first_job, jobs;  // numbers in the batch
};

// Up to 32 neighbors, a thread each: blocks of a component, or eights of pixels of a window,
// numbered row by row.
struct PieceJob {
  uint32_t picture, component, first;
};
constexpr int kPiece = 32;

}  // namespace headrace
