// SPDX-License-Identifier: Apache-2.0
// Serializes a track to a few bytes per packet, for caches and packs. Reading this index costs a
// fifth of reading the file's own tables, and does not access the file.
//
// Numbers are in columns, each as wide as its largest number: sizes, gaps between packets, times in
// multiples of their common divisor, which packets are key frames, and the frames' offsets relative
// to them. A hash protects all of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/codecs/video/video_track.h"

namespace headrace {

// Whether the track can be indexed: animations cannot, because opening one reads all of it anyway.
bool has_video_index(const VideoTrack& track);
// REQUIRES: has_video_index().
std::vector<uint8_t> video_index_of(const VideoTrack& track);

// HR0366 if the bytes are not an index, or belong to a file of a different size. Time and memory
// are proportional to the bytes. REQUIRES: the caller knows from the file's identity that the index
// belongs to it.
Result<VideoTrack> track_from_video_index(std::span<const uint8_t> index, uint64_t file_bytes);

}  // namespace headrace
