// SPDX-License-Identifier: Apache-2.0
// Memory of a video's frame, estimated before decoding.
#pragma once

#include <cstddef>

#include "headrace/codecs/video/video_track.h"

namespace headrace {

// Upper bound, from the container's size and profile. A stream that does not match them is detected
// when its frames are output.
size_t most_frame_bytes(const VideoTrack& track);

}  // namespace headrace
