// SPDX-License-Identifier: Apache-2.0
// Replies of the media process are untrusted bytes, since a hostile file may control it. Here they
// become a frame or an error; replies are copies that no longer change.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/codecs/media/media_protocol.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/codecs/video/yuv_frame.h"

namespace headrace {

// A frame whose planes are in `memory`, including the readable bytes after rows. HR0371 if its size
// differs from the track's; none if the reply is invalid.
Result<YuvFrame> yuv_frame_of(const media::Frame& frame, std::span<const uint8_t> memory,
                              const VideoTrack& track);

}  // namespace headrace
