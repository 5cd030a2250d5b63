// SPDX-License-Identifier: Apache-2.0
// The memory of a video's frame, estimated before decoding.
#pragma once

#include <cstddef>

#include "headrace/codecs/video/video_track.h"

namespace headrace {

// Upper bound, from the size and profile that the container specifies. A stream that differs from
// them is detected when its frames are output.
size_t most_frame_bytes(const VideoTrack& track);

}  // namespace headrace
