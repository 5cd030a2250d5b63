// SPDX-License-Identifier: Apache-2.0
// What an MP4 file is made of, without reading more of it than the heads of its boxes, and the one
// that says where packets lie.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// A box that lies in the file itself, of which no more is read than its head.
struct Mp4TopBox {
  uint32_t type = 0;
  uint64_t at = 0, content = 0, bytes = 0;  // of its head, of what it holds, and how much
};

struct Mp4TopLevel {
  std::span<const uint8_t> moov;  // in the file's memory or in this
  Buffer moov_memory;
  std::vector<Mp4TopBox> fragments;
};

// HR0362 where the file is cut off, or has no moov.
Result<Mp4TopLevel> read_mp4_top_level(const ByteRanges& file);

}  // namespace headrace
