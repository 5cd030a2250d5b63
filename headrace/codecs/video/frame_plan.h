// SPDX-License-Identifier: Apache-2.0
// The packets that a decoder is fed so that certain frames come out: as few as possible. Pure.
//
// The first bytes of packets are looked at: whether a decoder really can begin at one that the
// container calls a key, and, of H.264, HEVC and AV1, whether others need it. That is done here and
// not once for all, as it touches the file: a clip has some hundred packets, a film a hundred
// thousand.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

struct Feed {
  uint32_t packet = 0;
  // The decoder first gives what it still holds, and then forgets all that it was fed. So does the
  // first of a plan.
  bool restart = false;
};

struct FramePlan {
  std::vector<Feed> feeds = {};
  // Numbers of the packets whose frames are kept, ascending in the order of their frames.
  std::vector<uint32_t> kept = {};
  // The next few packets that others need, up to where decoding can begin anew: what makes a
  // decoder give the last frames that it holds back, without that it is told that nothing follows.
  std::vector<uint32_t> ahead = {};
};

// A packet that cannot be read counts as one that is needed: reading it again says so. REQUIRES:
// frames' numbers, ascending, none twice; `file` is what the track was read from.
FramePlan plan_frames(const VideoTrack& track, const ByteRanges& file,
                      std::span<const uint32_t> frames);

}  // namespace headrace
