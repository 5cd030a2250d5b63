// SPDX-License-Identifier: Apache-2.0
// The first audio track of an MP4 file: positions of its packets, and which of their samples are
// audible. Hostile bytes; time and memory in proportion to them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/codecs/media/media_packet.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

struct Mp4Sound {
  std::string codec;                // "mp4a"
  int object_type = -1;             // of mp4a: 0x40 is MPEG-4 audio
  std::vector<uint8_t> parameters;  // of mp4a: the AudioSpecificConfig
  int64_t ticks_per_second = 0;     // of what follows; an AAC track's are its samples
  std::vector<MediaPacket> packets;
  // The audible part: [begin, end) of the packets' samples, from the first one's begin on.
  int64_t begin = 0, end = 0;
  int64_t start = 0;  // when `begin` is heard, by the clock that pictures share
};

// Errors are those of videos (HR0361 to HR0365); HR0364 where there is no track of sound.
Result<Mp4Sound> read_mp4_sound(const ByteRanges& file);

}  // namespace headrace
