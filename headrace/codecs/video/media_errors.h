// SPDX-License-Identifier: Apache-2.0
// What can go wrong between a track's packets and its frames.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/base/error.h"
#include "headrace/codecs/video/video_track.h"

namespace headrace {

// `packet`: of the track; where it lies is said, and which frame it brings.
Error missing_frame(const VideoTrack& track, uint32_t packet);                    // HR0367
Error damaged_video(const VideoTrack& track, uint32_t packet, std::string what);  // HR0368
Error ended_media_process(std::string what);                                      // HR0369
Error no_media_process(std::string what, std::string hint);                       // HR0370
Error undecoded_video(std::string what, std::string hint);                        // HR0371

}  // namespace headrace
