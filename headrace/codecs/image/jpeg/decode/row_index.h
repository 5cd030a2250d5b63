// SPDX-License-Identifier: Apache-2.0
// Where the MCU rows of a baseline JPEG begin: byte, bit and DC predictors of each. With it a
// decoder starts at the window instead of at the top. As bytes: 8 of header, then kEntryBytes a
// row.
//
// Parsed as hostile input: offsets ascend and lie inside the file; a wrong index may cost time or
// pixels of nothing but its own picture, never memory safety. That it belongs to the file is the
// business of whoever keeps it (a hash of the bytes).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace {

struct JpegRowEntry {
  uint32_t byte = 0;                   // offset in the file of the byte that holds the first bit
  uint8_t bit = 0;                     // 0..7, from the most significant
  std::array<int16_t, 3> predictor{};  // DC predictors before the row
};

class JpegRowIndex {
 public:
  void clear(int mcus_wide, int mcus_high, int restart_interval);
  void add(const JpegRowEntry& entry) { rows_.push_back(entry); }
  // Fills in the rows that the bytes tell; false, and none, when they are no index of a picture
  // with this layout, or do not fit into this file.
  bool parse(std::span<const uint8_t> bytes, int mcus_wide, int mcus_high, int restart_interval,
             size_t file_bytes);
  std::vector<uint8_t> bytes() const;

  // Rows [0, size()) are known.
  int size() const { return static_cast<int>(rows_.size()); }
  const JpegRowEntry& row(int m) const { return rows_[m]; }
  JpegRowEntry& row(int m) { return rows_[m]; }

 private:
  int mcus_wide_ = 0, mcus_high_ = 0, restart_interval_ = 0;
  std::vector<JpegRowEntry> rows_;
};

// Whether bytes that are an index know every row of their picture: one that was learned may end at
// the last row that was decoded. False for bytes that are no index.
bool knows_all_rows(std::span<const uint8_t> bytes);

}  // namespace headrace
