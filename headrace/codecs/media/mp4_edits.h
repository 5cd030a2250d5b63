// SPDX-License-Identifier: Apache-2.0
// Which part of an MP4 track is shown, and when (the edit list, ISO/IEC 14496-12, 8.6.6).
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"

namespace headrace {

// What is shown at t of the media, t in [begin, end), is shown at t + delay of the file.
struct Mp4Edits {
  int64_t begin = INT64_MIN, end = INT64_MAX, delay = 0;
};

// Time that stays empty, followed by one piece of the media as fast as it is; pieces that follow
// one another are one. HR0363 for anything else.
Result<Mp4Edits> read_mp4_edits(std::span<const uint8_t> elst, uint32_t movie_ticks_per_second,
                                uint32_t media_ticks_per_second);

}  // namespace headrace
