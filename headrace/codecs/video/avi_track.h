// SPDX-License-Identifier: Apache-2.0
// The pictures of an AVI file, which stores packets in decoding order and without times: each
// packet takes one tick. For MPEG-4, the display order follows from the picture types, and both
// pictures of a packet that holds two (DivX, Xvid) become frames.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

bool begins_like_avi(std::span<const uint8_t> first_bytes);
// The first video stream. Reads chunk by chunk and ignores indexes, which are the part of such
// files that is most often wrong.
Result<VideoTrack> read_avi_track(const ByteRanges& file);

}  // namespace headrace
