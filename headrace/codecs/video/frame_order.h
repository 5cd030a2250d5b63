// SPDX-License-Identifier: Apache-2.0
// From packets to frames: which are shown, and in what order. Shared by all containers.
#pragma once

#include <cstdint>

#include "headrace/base/error.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// Sets track.frames: all packets with pts in [begin, end) that contain a visible frame, by pts;
// those with equal pts in decoding order. VP8 and VP9 packets are inspected, because some contain
// only a reference frame; other codecs have one frame per packet. Returns errors of reading the
// file.
Result<void> order_frames(const ByteRanges& file, int64_t begin, int64_t end, VideoTrack& track);

}  // namespace headrace
