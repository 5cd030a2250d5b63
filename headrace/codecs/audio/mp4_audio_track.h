// SPDX-License-Identifier: Apache-2.0
// The first audio track of an MP4 file: positions of its packets, and which of their samples are
// audible. Parses hostile bytes, in time and memory proportional to their number.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/codecs/media/media_packet.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

struct Mp4AudioTrack {
  std::string codec;                // "mp4a"
  int object_type = -1;             // for mp4a: 0x40 is MPEG-4 audio
  std::vector<uint8_t> parameters;  // for mp4a: the AudioSpecificConfig
  int64_t ticks_per_second = 0;     // clock of the fields below; for an AAC track, its sample rate
  std::vector<MediaPacket> packets;
  // The audible part: [begin, end) of the packets' samples, counted from the start of the first
  // packet.
  int64_t begin = 0, end = 0;
  int64_t start = 0;  // time of `begin` on the clock that audio and video share
};

// Returns video errors (HR0361 to HR0365); HR0364 if there is no audio track.
Result<Mp4AudioTrack> read_mp4_audio_track(const ByteRanges& file);

}  // namespace headrace
