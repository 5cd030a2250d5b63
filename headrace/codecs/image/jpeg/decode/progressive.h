// SPDX-License-Identifier: Apache-2.0
// Our own decoder of progressive JPEG files.
//
// Row r of a scan's blocks only depends on row r of the earlier scans. So all scans are decoded in
// parallel, one MCU row at a time: coefficients are kept for that row only, its samples are
// computed and upsampled as in a baseline image, and nothing below the window is decoded. Blocks
// above the window and next to it only keep the masks that later scans need.
//
// If anything in the file is suspicious, decoding ends with kRefused, and libjpeg decodes the whole
// image. Rows already delivered to the sink are correct, and are not sent again (RemainingRows).
// For one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/decode/baseline.h"
#include "headrace/codecs/image/jpeg/decode/rows.h"
#include "headrace/codecs/image/jpeg/headers/header.h"
#include "headrace/kernels/jpeg/idct.h"
#include "headrace/kernels/jpeg/progressive_scan.h"

namespace headrace {

// The structure of the progressive JPEG files that our own decoder supports: Huffman-coded, one or
// three components, whose scans together transmit all bits of all coefficients in an order that the
// standard allows. Bounds-checked; for one thread.

struct JpegProgressiveScan {
  ScanForm form;
  int count = 0;                        // number of components
  std::array<uint8_t, 4> component{};   // indices in the frame
  std::array<HuffmanSpec, 4> tables{};  // by component of the scan; only those that it uses are set
  int restart_interval = 0;             // in MCUs of this scan; 0: none
  size_t first = 0, end = 0;            // range of its data in the file, restart markers included
  bool uses_tables() const { return !form.is_dc() || !form.refines; }
};

struct JpegProgressiveHeader {
  static constexpr int kMax = 32;  // real files have about ten

  JpegHeader header;  // the frame, with the quantization tables that decode it
  std::vector<JpegProgressiveScan> scans;
};

// False for anything unusual, incomplete or damaged: that goes to libjpeg, so that users see its
// errors and warnings, and because it interpolates coefficients that an incomplete file lacks
// (block smoothing).
bool read_progressive_header(std::span<const uint8_t> bytes, JpegProgressiveHeader& out);

class JpegProgressiveDecoder {
 public:
  using Task = JpegBaselineDecoder::Task;
  // Leaves the outcome kRefused if our decoder does not handle the image.
  void decode(Task& task);

  // Frees what it keeps between images.
  void free();

  // Upper bound on the memory for decoding.
  static size_t working_bytes(size_t file_bytes, int width);

 private:
  // A scan that is being decoded.
  struct Walk {
    const JpegProgressiveScan* scan = nullptr;
    ProgressiveScan bits;
    uint8_t* unstuffed = nullptr;  // room for the whole scan's data
    size_t next = 0;               // file offset after the data unstuffed so far
    int64_t mcus = 0;              // number of MCUs of this scan decoded so far
    int restarts = 0;
  };
  // A component's blocks of the current MCU row.
  struct Plane {
    int16_t* coefficients = nullptr;
    uint64_t* nonzero = nullptr;
    int blocks_wide = 0;  // padded to whole MCUs
    int rows = 0;
    int kept_first = 0, kept_end = 0;
  };

  bool begin(const DecodeJob& job);
  void place_planes();
  bool open_scans();
  bool open_segment(Walk& walk);
  void clear_row(bool keeps);
  bool walk_row(Walk& walk, int m, bool keeps);
  bool walk_mcus(Walk& walk, const ScanMcus& mcus, int count);
  bool walk_blocks(Walk& walk, const ScanBlocks& blocks);
  static int until_restart(const Walk& walk, int count);
  bool cross_restart(Walk& walk);
  void transform_row(int m);

  std::span<const uint8_t> bytes_;
  JpegProgressiveHeader image_;
  JpegRows rows_;
  CountedRows rows_out_;
  std::array<IdctTable, 4> tables_;
  std::array<Plane, 4> planes_;
  Buffer coefficients_, masks_, unstuffed_;
  std::vector<std::unique_ptr<Walk>> walks_;  // kept between images
};

}  // namespace headrace
