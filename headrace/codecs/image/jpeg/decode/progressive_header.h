// SPDX-License-Identifier: Apache-2.0
// The structure of the progressive JPEG files that our own decoder supports: Huffman-coded, one or
// three components, whose scans together transmit all bits of all coefficients in an order that the
// standard allows. Bounds-checked; for one thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/codecs/image/jpeg/headers/header.h"
#include "headrace/kernels/jpeg/progressive_scan.h"

namespace headrace {

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
  static constexpr int kMost = 32;  // real files have about ten

  JpegHeader header;  // the frame, with the quantization tables that decode it
  std::vector<JpegProgressiveScan> scans;
};

// False for anything unusual, incomplete or damaged: that goes to libjpeg, so that users see its
// errors and warnings, and because it interpolates coefficients that an incomplete file lacks
// (block smoothing).
bool read_progressive_header(std::span<const uint8_t> bytes, JpegProgressiveHeader& out);

}  // namespace headrace
