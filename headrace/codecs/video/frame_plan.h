// SPDX-License-Identifier: Apache-2.0
// Plans the fewest packets that a decoder must be fed to output given frames. Pure functions.
//
// Inspects the first bytes of packets: whether a decoder really can begin at one that the container
// marks as a key frame, and, for H.264, HEVC and AV1, whether other packets need it. This is done
// for each plan, not once when the file is opened, because it reads the packets: a clip has about a
// hundred packets, a film a hundred thousand.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

struct Feed {
  uint32_t packet = 0;
  // The decoder first outputs what it still holds, and then forgets all earlier packets. This also
  // applies to the first packet of a plan.
  bool restart = false;
};

struct FramePlan {
  std::vector<Feed> feeds = {};
  // Numbers of the packets whose frames are requested, in frame order.
  std::vector<uint32_t> kept = {};
  // The next few packets that others need, up to the next restart point: they make a decoder output
  // the last held-back frames without signaling the end of the stream.
  std::vector<uint32_t> ahead = {};
};

// Whether decoders of this codec hold frames back, so that plans have packets `ahead`: at most
// kFarthestAhead after the last one of the feeds.
bool delays_output(VideoCodec codec);
inline constexpr uint32_t kFarthestAhead = 16;

// Whether the first kFirstBytes of packet 0 are inspected for every plan of this codec, and whether
// a decoder must be fed that packet because of them.
bool inspects_first_packet(VideoCodec codec);
bool needs_first_packet(const VideoTrack& track, std::span<const uint8_t> first);
inline constexpr uint32_t kFirstBytes = 4096;

// A packet that cannot be read counts as needed; reading it again reports the error. REQUIRES:
// frame numbers ascend without duplicates; `file` is what the track was read from.
FramePlan plan_frames(const VideoTrack& track, const ByteRanges& file,
                      std::span<const uint32_t> frames);

}  // namespace headrace
