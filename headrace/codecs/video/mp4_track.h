// SPDX-License-Identifier: Apache-2.0
// The tracks of an MP4, MOV or 3GP file (ISO/IEC 14496-12).
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

bool begins_like_mp4(std::span<const uint8_t> first_bytes);
// The first video track, skipping chapter thumbnails and disabled tracks if there is another.
Result<VideoTrack> read_mp4_track(const ByteRanges& file);

}  // namespace headrace
