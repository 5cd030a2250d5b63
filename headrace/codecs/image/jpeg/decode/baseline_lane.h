// SPDX-License-Identifier: Apache-2.0
// The decoding state of one image in JpegBaselineDecoder.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "headrace/base/buffer.h"
#include "headrace/codecs/image/jpeg/decode/baseline.h"
#include "headrace/codecs/image/jpeg/decode/row_index.h"
#include "headrace/codecs/image/jpeg/decode/rows.h"
#include "headrace/kernels/jpeg/huffman.h"
#include "headrace/kernels/jpeg/idct.h"

namespace headrace {

class JpegBaselineDecoder::Lane {
 public:
  // False if our decoder does not handle the image.
  bool begin(const DecodeJob& job);
  // Like begin(), but only entropy-decodes all rows, to build the row index.
  bool begin_walk(std::span<const uint8_t> bytes, int spacing);

  enum class Progress : uint8_t { kMore, kFinished, kRefused };
  // What to do after walk() stopped at this lane.
  Progress advance();

  HuffmanLane& bits() { return bits_; }
  int delivered() const { return rows_out_.count(); }
  bool learned_more() const { return learn_ && index_.size() > known_rows_; }
  // Converts noted positions to file offsets; the index is then complete up to the last decoded
  // row.
  std::vector<uint8_t> learned();

 private:
  bool open_image(std::span<const uint8_t> bytes);
  void find_blocks();
  bool start();
  bool start_at(int row);
  bool open_segment(size_t first, size_t end, uint64_t bit);
  int row_stop(int row) const;
  void begin_run();
  bool take_run();
  Progress end_window();
  Progress walk_rest();
  bool rest_exists() const;
  bool cross_restart();
  bool near_missing_end() const;
  void note_row();
  void note_inner();
  void count_mcu_bits(uint64_t bit, int column);
  int mcus_to_note(int column) const;
  void resolve_offsets();
  void transform_row(int m);

  std::span<const uint8_t> bytes_;
  RowIndexSlot slot_;
  JpegHeader header_;
  std::array<HuffmanTable, 4> dc_, ac_;
  std::array<const HuffmanTable*, 4> dc_of_{}, ac_of_{};  // by component
  McuPattern pattern_;
  std::array<int, 4> first_block_{};  // of a component, inside an MCU
  HuffmanLane bits_;

  // The entropy-coded data between two markers, unstuffed.
  Buffer unstuffed_;
  size_t segment_ = 0, segment_end_ = 0;  // offsets in the file
  uint64_t segment_bits_ = 0;             // length of the segment in bits, without stuffing

  bool pixels_ = false;  // false: only entropy decoding, for the row index
  JpegRows rows_;
  CountedRows rows_out_;
  std::array<IdctTable, 4> tables_;
  Buffer coefficients_;              // of the window's part of one MCU row
  int mcu_first_ = 0, mcu_end_ = 0;  // columns of MCUs that the window needs
  int row_first_ = 0, row_end_ = 0;  // MCU rows
  // End of the row with the window's last MCU: decoded to here if it is not certain that the file
  // has the rest (Note [Which rows a file has]).
  int64_t rest_end_ = 0;
  bool in_rest_ = false;

  int64_t mcu_ = 0;  // the next one to decode, in raster order
  int run_ = 0;      // MCUs in the current run
  std::array<int, 4> predictors_{};

  bool learn_ = false;
  int known_rows_ = 0;
  JpegRowIndex index_;
  // The first row whose entry is still an offset into this segment's unstuffed data.
  int unresolved_ = 0;
  // When no pixels are needed, also notes entries inside of rows: the segment's bit at the row's
  // first byte, the bit and the MCU of the row's last entry, and the recent number of bits per MCU.
  bool notes_inner_ = false;
  uint64_t row_bit_ = 0, inner_bit_ = 0;
  int inner_mcu_ = 0;
  uint64_t mcu_bits_ = 1;
};

}  // namespace headrace
