// SPDX-License-Identifier: Apache-2.0
// Replies of the media process are trusted to be bytes and nothing more: a hostile file may control
// it. Here they become a frame or an error; replies are copies, which do not change any more.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/codecs/media/media_protocol.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/codecs/video/yuv_frame.h"

namespace headrace {

// A frame whose planes lie in `memory`, with the bytes beyond that may be read. HR0371 where it is
// of another size than the track's; nothing where the reply makes no sense.
Result<YuvFrame> yuv_frame_of(const media::Frame& frame, std::span<const uint8_t> memory,
                              const VideoTrack& track);

}  // namespace headrace
