// SPDX-License-Identifier: Apache-2.0
// Finds the frames of a track by time.
#pragma once

#include <cstddef>

#include "headrace/codecs/video/video_track.h"

namespace headrace {

// When a frame begins, in seconds of the file's clock.
double begin_of_frame(const VideoTrack& track, size_t frame);
// The frame that begins nearest to that second, the first of two that are equally near; frame 0 if
// `seconds` is not finite. REQUIRES: the track has frames.
size_t nearest_frame(const VideoTrack& track, double seconds);

}  // namespace headrace
