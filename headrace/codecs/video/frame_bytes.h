// SPDX-License-Identifier: Apache-2.0
// Memory of a video's frame, before one is decoded.
#pragma once

#include <cstddef>

#include "headrace/codecs/video/video_track.h"

namespace headrace {

// At most so many bytes, by the size that the container says and the profile that it says the
// stream has. A stream that keeps to neither is met when its frames come out.
size_t most_frame_bytes(const VideoTrack& track);

}  // namespace headrace
