// SPDX-License-Identifier: Apache-2.0
// The headers of the JPEG files that our own decoder supports: baseline (or extended with 8 bits),
// Huffman-coded, one scan that contains all of one or three components. Bounds-checked; allocates
// nothing; any thread may call it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "headrace/codecs/image/jpeg/headers/frame.h"
#include "headrace/codecs/image/jpeg/headers/syntax.h"

namespace headrace {

struct JpegHeader {
  JpegFrame frame;  // laid out
  // MCU rows that libjpeg reads as one: a gray image's vertical factor, which has no other
  // effect.
  int rows_at_once = 1;
  int restart_interval = 0;
  size_t scan = 0;  // offset of the first byte of entropy-coded data
  JpegTables tables;
  std::array<uint8_t, 4> dc_slot{}, ac_slot{};  // by component
};

// False for anything unusual, damaged, or not fully understood: that goes to libjpeg, so that users
// see its errors and warnings.
bool read_jpeg_header(std::span<const uint8_t> bytes, JpegHeader& header);

}  // namespace headrace
