// SPDX-License-Identifier: Apache-2.0
// A track in a few bytes per packet, for caches and packs: reading it costs a fifth of reading the
// file's own tables, and does not read the file.
//
// Numbers are in columns, each as wide as its largest number: sizes, what lies between one packet
// and the next, times in multiples of what divides all, which packets are keys, and where frames
// stand against them. A hash guards all of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/codecs/video/video_track.h"

namespace headrace {

// Whether there is one for it: animations have none, as opening one reads all of it anyway.
bool has_video_index(const VideoTrack& track);
// REQUIRES: has_video_index().
std::vector<uint8_t> video_index_of(const VideoTrack& track);

// HR0366 where the bytes are no index, or one of another file than of this size. Time and memory in
// proportion to the bytes. REQUIRES: who keeps it knows by the file's identity that it is of this
// file.
Result<VideoTrack> track_from_video_index(std::span<const uint8_t> index, uint64_t file_bytes);

}  // namespace headrace
