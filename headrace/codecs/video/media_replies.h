// SPDX-License-Identifier: Apache-2.0
// Converts replies of the media process to frames or errors. Replies are untrusted bytes, because a
// hostile file may control that process; they are copies, so it can no longer change them.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/codecs/media/media_protocol.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/codecs/video/yuv_frame.h"

namespace headrace {

// A frame whose planes are in `memory`, including the readable bytes after rows. HR0371 if its size
// differs from the size of the track; HR0369 if the reply is invalid.
Result<YuvFrame> yuv_frame_of(const media::Frame& frame, std::span<const uint8_t> memory,
                              const VideoTrack& track);

}  // namespace headrace
