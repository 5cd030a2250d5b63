// SPDX-License-Identifier: Apache-2.0
// What a JPEG file's marker segments say up to its current scan. Taking a file
// apart and putting it together both feed it every segment in order, so both
// read and write a scan alike.
//
// Refuses what libjpeg-turbo refuses or warns of: parts are only made of files
// without any anomaly, so that it never depends on how a picture is stored
// whether it counts as damaged.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "headrace/codecs/jpeg_frame.h"
#include "headrace/codecs/jpeg_parts_scan.h"
#include "headrace/kernels/huffman.h"

namespace headrace {

namespace jpeg_marker {
constexpr int kTem = 0x01, kSof0 = 0xC0, kSof1 = 0xC1, kSof2 = 0xC2, kDht = 0xC4, kDac = 0xCC;
constexpr int kRst0 = 0xD0, kRst7 = 0xD7, kSoi = 0xD8, kEoi = 0xD9, kSos = 0xDA, kDqt = 0xDB;
constexpr int kDnl = 0xDC, kDri = 0xDD, kApp0 = 0xE0, kApp14 = 0xEE, kApp15 = 0xEF, kCom = 0xFE;
// Markers that no segment follows.
inline bool stands_alone(int marker) {
  return marker == kTem || (marker >= kRst0 && marker <= kEoi);
}
}  // namespace jpeg_marker

class JpegSegments {
 public:
  // A short reason, empty when all is well.
  using Reason = std::string_view;

  // Takes a segment, without marker and length. After SOS, scan() is the scan
  // that follows.
  Reason take(int marker, std::span<const uint8_t> body);
  // At the end marker: whether the scans have brought all there is to bring.
  Reason complete() const;

  // Laid out; a component's quantization is that of its first scan, as in
  // libjpeg.
  bool has_frame() const { return frame_.count > 0; }
  const JpegFrame& frame() const { return frame_; }
  // Sampling factors as the file has them; those of a single component do not
  // matter.
  int stored_h(int c) const { return stored_h_[c]; }
  int stored_v(int c) const { return stored_v_[c]; }
  bool progressive() const { return progressive_; }
  const JpegScan& scan() const { return scan_; }
  // Null where no such table was defined.
  const HuffmanSpec* dc_table(int slot) const {
    return dc_seen_ >> slot & 1 ? &dc_[slot] : nullptr;
  }
  const HuffmanSpec* ac_table(int slot) const {
    return ac_seen_ >> slot & 1 ? &ac_[slot] : nullptr;
  }

 private:
  Reason frame_header(int marker, std::span<const uint8_t> body);
  Reason scan_header(std::span<const uint8_t> body);
  Reason check_progression();
  Reason huffman_tables(std::span<const uint8_t> body);
  Reason quantization_tables(std::span<const uint8_t> body);
  Reason application_segment(int marker, std::span<const uint8_t> body);
  JpegColor color() const;

  JpegFrame frame_;
  std::array<int, 4> stored_h_{}, stored_v_{};
  bool progressive_ = false;
  JpegScan scan_;
  int scans_ = 0;
  std::array<HuffmanSpec, 4> dc_, ac_;
  std::array<std::array<uint16_t, 64>, 4> quantization_{};  // natural order
  int quantization_seen_ = 0, dc_seen_ = 0, ac_seen_ = 0;   // one bit a slot
  int restart_interval_ = 0;
  // Bits of each coefficient that are still to come: libjpeg's coef_bits, -1
  // before the first scan.
  std::array<std::array<int8_t, 64>, 4> bits_left_;
  bool jfif_ = false;
  int adobe_ = -1;
};

}  // namespace headrace
