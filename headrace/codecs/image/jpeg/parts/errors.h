// SPDX-License-Identifier: Apache-2.0
// Errors of a JPEG file's parts, and the check with which all functions on them begin.
#pragma once

#include <string_view>

#include "headrace/base/error.h"
#include "headrace/codecs/image/jpeg/parts/parts.h"

namespace headrace {

// The file cannot be split into parts. `reason` is short, used for statistics.
Error not_taken_apart(std::string_view reason);
// The parts are inconsistent or damaged.
Error foreign_parts(std::string_view what);

inline size_t block_count(const CoefficientPlane& plane) {
  return size_t(plane.blocks_wide) * size_t(plane.blocks_high);
}

// Lays out a copy of the frame; false unless each component has a plane of the right size.
bool lay_out_parts(const JpegParts& parts, JpegFrame& frame);

}  // namespace headrace
