// SPDX-License-Identifier: Apache-2.0
// A JPEG file's marker segments up to its current scan. Every segment is passed to it in order,
// when a file is split and when it is joined, so that both interpret a scan in the same way.
//
// Rejects what libjpeg-turbo rejects or warns about: parts are only made of files without any
// anomaly, so that whether an image counts as damaged never depends on how it is stored.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "headrace/codecs/image/jpeg/headers/frame.h"
#include "headrace/codecs/image/jpeg/headers/syntax.h"
#include "headrace/codecs/image/jpeg/parts/scan.h"

namespace headrace {

class JpegSegments {
 public:
  // A short reason; empty if there is no problem.
  using Reason = std::string_view;

  // Takes a segment, without marker and length. After SOS, scan() describes the scan that follows.
  Reason take(int marker, std::span<const uint8_t> body);
  // Called at the end marker: whether the scans have transmitted everything.
  Reason complete() const;

  // Laid out; a component has the quantization of its first scan, as in libjpeg.
  bool has_frame() const { return frame_.count > 0; }
  const JpegFrame& frame() const { return frame_; }
  // Sampling factors as in the file; those of a single component have no effect.
  int stored_h(int c) const { return stored_h_[c]; }
  int stored_v(int c) const { return stored_v_[c]; }
  bool progressive() const { return progressive_; }
  const JpegScan& scan() const { return scan_; }
  // Null if no such table was defined.
  const HuffmanSpec* dc_table(int slot) const {
    return tables_.dc_seen >> slot & 1 ? &tables_.dc[slot] : nullptr;
  }
  const HuffmanSpec* ac_table(int slot) const {
    return tables_.ac_seen >> slot & 1 ? &tables_.ac[slot] : nullptr;
  }

 private:
  Reason frame_header(int marker, std::span<const uint8_t> body);
  Reason scan_header(std::span<const uint8_t> body);
  Reason check_progression();
  Reason application_segment(int marker, std::span<const uint8_t> body);
  JpegColor color() const;

  JpegFrame frame_;
  std::array<int, 4> stored_h_{}, stored_v_{};
  bool progressive_ = false;
  JpegScan scan_;
  int scans_ = 0;
  JpegTables tables_;
  int restart_interval_ = 0;
  // Bits of each coefficient not yet transmitted: libjpeg's coef_bits, -1 before the first scan.
  std::array<std::array<int8_t, 64>, 4> bits_left_;
  bool jfif_ = false;
  int adobe_ = -1;
};

}  // namespace headrace
