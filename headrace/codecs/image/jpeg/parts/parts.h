// SPDX-License-Identifier: Apache-2.0
// A JPEG file split into its coefficients and everything else, and joined again, byte for byte. The
// parts contain everything for lossless repacking: markers, tables, the scans' order and
// parameters, restart intervals, padding bits, bytes after the end.
//
// split_jpeg() only returns parts from which join_jpeg() was verified to restore the same bytes.
// Any thread may call these functions, with untrusted bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/headers/frame.h"

namespace headrace {

struct JpegParts {
  JpegFrame frame;                       // laid out
  std::vector<CoefficientPlane> planes;  // one per component; real blocks, natural order
  std::vector<uint8_t> remainder;        // the rest of the file, in a custom format
};

// An error's `what` is a short reason, used for statistics ("arithmetic coding", "truncated", ...).
Result<JpegParts> split_jpeg(std::span<const uint8_t> jpeg);
// The same without verification, in half the time: join_jpeg() may not reproduce the file.
Result<JpegParts> read_jpeg_parts(std::span<const uint8_t> jpeg);
// HR0325 if the parts are inconsistent or damaged.
Result<std::vector<uint8_t>> join_jpeg(const JpegParts& parts);

// The same pixels as an ordinary baseline JPEG with optimized Huffman tables: for storing
// non-baseline files in a small form that can be decoded from any row.
Result<std::vector<uint8_t>> baseline_jpeg(const JpegParts& parts);

// The rest is internal to parts/: errors, and the check with which all functions begin.

// The file cannot be split into parts. `reason` is short, used for statistics.
Error cannot_split(std::string_view reason);
// The parts are inconsistent or damaged.
Error inconsistent_parts(std::string_view what);

inline size_t block_count(const CoefficientPlane& plane) {
  return size_t(plane.blocks_wide) * size_t(plane.blocks_high);
}

// Lays out a copy of the frame; false unless each component has a plane of the right size.
bool lay_out_parts(const JpegParts& parts, JpegFrame& frame);

}  // namespace headrace
