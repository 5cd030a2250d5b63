// SPDX-License-Identifier: Apache-2.0
// Where the MCU rows of a baseline JPEG begin: byte, bit and DC predictors of each; and, in version
// 2, positions within rows where decoding may begin, a given number of bits or more apart. With a
// row index, a decoder starts at the window instead of at the top, and a device decodes an image in
// short segments. Its format: docs/spec/dense-jpeg.md.
//
// Parsed as hostile input: offsets ascend and lie inside the file; a wrong index may only affect
// the speed and pixels of its own image, never memory safety. The owner of the index ensures that
// it belongs to the file (by a hash of the bytes).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/codecs/image/jpeg/headers/header.h"

namespace headrace {

// A position inside a row, between two MCUs.
struct JpegInnerEntry {
  uint32_t mcu = 0;                    // the next MCU, counted from the row's first
  uint32_t bit = 0;                    // from the row's first byte, stuffing not counted
  std::array<int16_t, 3> predictor{};  // DC predictors there
};

struct JpegRowEntry {
  uint32_t byte = 0;                   // offset in the file of the byte that holds the first bit
  uint8_t bit = 0;                     // 0..7, from the most significant
  std::array<int16_t, 3> predictor{};  // DC predictors there
  bool searched = false;               // whether inner entries were searched for
  uint8_t inner = 0;                   // number of inner entries
  uint32_t first_inner = 0;            // number of the first one among all of the index
};

// Properties that an index must agree with.
struct JpegRowLayout {
  int mcus_wide = 0, mcus_high = 0, restart_interval = 0, components = 0;

  static JpegRowLayout of(const JpegHeader& header) {
    const JpegFrame& frame = header.frame;
    return {frame.mcus_wide, frame.mcus_high, header.restart_interval, frame.count};
  }
  // Whether a restart marker is inside the row, which then has no inner entries.
  bool restarts_inside(int row) const;
};

class JpegRowIndex {
 public:
  // Inner entries are at least this many bits apart; a multiple of 64.
  static constexpr int kSpacing = 8192;
  // Maximum number of inner entries per row, and maximum distance between two, in MCUs and in bits.
  static constexpr int kMaxInner = 254, kMaxMcus = 255, kMaxBits = 65535;

  void clear(const JpegRowLayout& layout, int spacing = kSpacing);
  void add(const JpegRowEntry& entry);
  // Adds to the last row, which then counts as searched. REQUIRES: it comes after the row's last
  // entry, by at most kMaxMcus and kMaxBits.
  void add_inner(const JpegInnerEntry& entry);
  // Fills in the rows from an index of either version; false, with no rows, if it is not an index
  // of an image with this layout, or does not fit into this file.
  bool parse(std::span<const uint8_t> bytes, const JpegRowLayout& layout, size_t file_bytes);
  // In version 2.
  std::vector<uint8_t> bytes() const;

  int spacing() const { return spacing_; }
  // Rows [0, size()) are known.
  int size() const { return static_cast<int>(rows_.size()); }
  const JpegRowEntry& row(int m) const { return rows_[m]; }
  JpegRowEntry& row(int m) { return rows_[m]; }
  std::span<const JpegInnerEntry> inner(int m) const {
    return std::span(inner_).subspan(rows_[m].first_inner, rows_[m].inner);
  }
  // How many inner entries of row m are at or before the row's MCU number `mcu`.
  size_t inner_before(int m, int mcu) const;

 private:
  bool parse_rows(class ByteReader& in, bool has_inner, size_t file_bytes);
  bool parse_inner(class ByteReader& in, JpegRowEntry& row);

  JpegRowLayout layout_;
  int spacing_ = kSpacing;
  std::vector<JpegRowEntry> rows_;
  std::vector<JpegInnerEntry> inner_;
};

// Whether an index covers every row of its image; one built while decoding may end at the last
// decoded row. False if the bytes are not an index.
bool covers_all_rows(std::span<const uint8_t> bytes);

}  // namespace headrace
