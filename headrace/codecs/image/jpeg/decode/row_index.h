// SPDX-License-Identifier: Apache-2.0
// Where the MCU rows of a baseline JPEG begin: byte, bit and DC predictors of each; and, in version
// 2, where decoding may begin inside of them, every so many bits. With it a decoder starts at the
// window instead of at the top, and a device walks a picture in short stretches. Its bytes:
// docs/spec/dense-jpeg.md.
//
// Parsed as hostile input: offsets ascend and lie inside the file; a wrong index may cost time or
// pixels of nothing but its own picture, never memory safety. That it belongs to the file is the
// business of whoever keeps it (a hash of the bytes).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/codecs/image/jpeg/headers/header.h"

namespace headrace {

// A place inside a row, between two MCUs.
struct JpegInnerEntry {
  uint32_t mcu = 0;                    // the next one, from the row's first
  uint32_t bit = 0;                    // from the row's first byte, stuffing not counted
  std::array<int16_t, 3> predictor{};  // DC predictors there
};

struct JpegRowEntry {
  uint32_t byte = 0;                   // offset in the file of the byte that holds the first bit
  uint8_t bit = 0;                     // 0..7, from the most significant
  std::array<int16_t, 3> predictor{};  // DC predictors before the row
  bool searched = false;               // for inner entries
  uint8_t inner = 0;                   // how many there are
  uint32_t first_inner = 0;            // of all that the index has
};

// Facts with which an index has to agree.
struct JpegRowLayout {
  int mcus_wide = 0, mcus_high = 0, restart_interval = 0, components = 0;

  static JpegRowLayout of(const JpegHeader& header) {
    const JpegFrame& frame = header.frame;
    return {frame.mcus_wide, frame.mcus_high, header.restart_interval, frame.count};
  }
  // Whether a restart marker stands inside of the row: then it has no inner entries.
  bool restarts_inside(int row) const;
};

class JpegRowIndex {
 public:
  // Inner entries are that many bits apart, or somewhat more; a multiple of 64.
  static constexpr int kSpacing = 8192;
  // At most: in a row, and MCUs and bits between two.
  static constexpr int kMostInner = 254, kMostMcus = 255, kMostBits = 65535;

  void clear(const JpegRowLayout& layout, int spacing = kSpacing);
  void add(const JpegRowEntry& entry);
  // To the last row, which counts as searched then.
  // REQUIRES: it follows the row's last one, by at most kMostMcus and kMostBits.
  void add_inner(const JpegInnerEntry& entry);
  // Fills in the rows that the bytes tell, of either version; false, and none, when they are no
  // index of a picture with this layout, or do not fit into this file.
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
  // How many of the row's inner entries lie at or before an MCU of it.
  size_t inner_before(int m, int mcu) const;

 private:
  bool parse_rows(class ByteReader& in, bool has_inner, size_t file_bytes);
  bool parse_inner(class ByteReader& in, JpegRowEntry& row);

  JpegRowLayout layout_;
  int spacing_ = kSpacing;
  std::vector<JpegRowEntry> rows_;
  std::vector<JpegInnerEntry> inner_;
};

// Whether bytes that are an index know every row of their picture: one that was learned may end at
// the last row that was decoded. False for bytes that are no index.
bool knows_all_rows(std::span<const uint8_t> bytes);

}  // namespace headrace
