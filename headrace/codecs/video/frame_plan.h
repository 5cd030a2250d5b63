// SPDX-License-Identifier: Apache-2.0
// Which packets a decoder is fed so that certain frames come out of it: as few as possible. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/codecs/video/video_track.h"

namespace headrace {

struct Feed {
  uint32_t packet = 0;
  bool restart = false;  // the decoder first forgets what it was fed before
};

struct FramePlan {
  std::vector<Feed> feeds;
  // Numbers of the packets whose frames are kept, ascending in the order of their frames.
  std::vector<uint32_t> kept;
};

// REQUIRES: frames' numbers, ascending, none twice.
FramePlan plan_frames(const VideoTrack& track, std::span<const uint32_t> frames);

}  // namespace headrace
