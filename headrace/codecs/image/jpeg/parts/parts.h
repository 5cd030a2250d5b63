// SPDX-License-Identifier: Apache-2.0
// A JPEG file taken apart into its coefficients and everything else, and put together again, byte
// for byte. It includes everything for lossless repacking: markers, tables, the scans' order and
// parameters, restart intervals, padding bits, bytes after the end.
//
// split_jpeg() only returns parts that join_jpeg() was seen to turn into the same bytes again.
// Both may be called from any thread; the bytes of either may be hostile.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/headers/frame.h"

namespace headrace {

struct JpegParts {
  JpegFrame frame;                       // laid out
  std::vector<CoefficientPlane> planes;  // one a component; real blocks, natural order
  std::vector<uint8_t> remainder;        // the rest of the file, in a form of its own
};

// An error's `what` is a short reason to count files by ("arithmetic coding", "truncated", ...).
Result<JpegParts> split_jpeg(std::span<const uint8_t> jpeg);
// The same without the proof, in half the time: join_jpeg() may not give the file back.
Result<JpegParts> read_jpeg_parts(std::span<const uint8_t> jpeg);
// HR0325 when the parts do not belong together or are damaged.
Result<std::vector<uint8_t>> join_jpeg(const JpegParts& parts);

// The same pixels as an ordinary baseline JPEG with Huffman tables made for it: for a store that
// keeps pictures small and decodable from any row, where the file itself is not baseline.
Result<std::vector<uint8_t>> baseline_jpeg(const JpegParts& parts);

}  // namespace headrace
