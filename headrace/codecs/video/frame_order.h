// SPDX-License-Identifier: Apache-2.0
// From packets to frames: which are shown, and in what order. Shared by all containers.
#pragma once

#include <cstdint>

#include "headrace/base/error.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// Sets track.frames: all packets whose pts lies in [begin, end), and which bring a frame, by pts;
// those of one pts as they are decoded. Of VP8 and VP9 packets are looked at, as some bring a
// picture that others are made from alone; other codecs have one frame a packet. Errors are those
// of reading the file.
Result<void> order_frames(const ByteRanges& file, int64_t begin, int64_t end, VideoTrack& track);

}  // namespace headrace
