// SPDX-License-Identifier: Apache-2.0
// Computes, from a file's tables alone, the bytes that a decoder will need for given frames, so
// that they can be requested from slow storage together and in advance. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/codecs/video/video_track.h"

namespace headrace {

// Whole packets of one group of pictures, which follow each other in the file.
struct PacketRange {
  uint64_t offset = 0, bytes = 0;
  bool operator==(const PacketRange&) const = default;
};

// The packets from the key frame before each frame on, in ascending order without duplicates. A
// group of pictures is divided into ranges of about kRangeBytes, at the same packets for all
// frames: frames that need the same packets have the same ranges. If there would be more than
// kMaxRanges, because packets are in no order or far apart, neighboring ranges are joined, with the
// bytes between them. Takes time and memory in proportion to the packets, whatever the table holds.
//
// plan_frames() may need other packets, which its reader has to read on its own: before a key frame
// at which a decoder cannot begin, and packet 0 of some streams. REQUIRES: the track has these
// frames.
std::vector<PacketRange> ranges_of_frames(const VideoTrack& track,
                                          std::span<const uint32_t> frames);

inline constexpr uint64_t kRangeBytes = uint64_t{256} << 10;
inline constexpr size_t kMaxRanges = 4096;

}  // namespace headrace
