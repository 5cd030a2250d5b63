// SPDX-License-Identifier: Apache-2.0
// Marker codes and the tables of DHT and DQT segments, for all readers of JPEG headers.
// Bounds-checked; any thread may call it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "headrace/codecs/image/byte_order.h"
#include "headrace/kernels/jpeg/huffman.h"

namespace headrace {

namespace jpeg_marker {
constexpr int kTem = 0x01, kSof0 = 0xC0, kSof1 = 0xC1, kSof2 = 0xC2, kDht = 0xC4, kJpg = 0xC8;
constexpr int kDac = 0xCC, kSof15 = 0xCF, kRst0 = 0xD0, kRst7 = 0xD7, kSoi = 0xD8, kEoi = 0xD9;
constexpr int kSos = 0xDA, kDqt = 0xDB, kDnl = 0xDC, kDri = 0xDD, kApp0 = 0xE0, kApp1 = 0xE1;
constexpr int kApp14 = 0xEE, kApp15 = 0xEF, kCom = 0xFE;
// Markers without a segment.
inline bool stands_alone(int marker) {
  return marker == kTem || (marker >= kRst0 && marker <= kEoi);
}
}  // namespace jpeg_marker

inline constexpr int kLargestJpegSide = 65500;  // libjpeg's JPEG_MAX_DIMENSION

// Tables by slot. Slots that were not seen are unspecified.
struct JpegTables {
  std::array<HuffmanSpec, 4> dc, ac;
  std::array<std::array<uint16_t, 64>, 4> quantization;  // natural order
  int dc_seen = 0, ac_seen = 0, quantization_seen = 0;   // one bit per slot

  void forget() { dc_seen = ac_seen = quantization_seen = 0; }
  // Parses a segment's content; false if it is damaged.
  bool take_huffman(std::span<const uint8_t> body);
  bool take_quantization(std::span<const uint8_t> body);
};

}  // namespace headrace
