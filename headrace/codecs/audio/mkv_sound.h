// SPDX-License-Identifier: Apache-2.0
// The first audio track of a Matroska or WebM file (RFC 9559): positions and times of its packets.
// Hostile bytes; time and memory in proportion to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/codecs/media/media_packet.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

struct MkvSound {
  std::string codec;                // "A_OPUS"
  std::vector<uint8_t> parameters;  // CodecPrivate
  double sample_rate = 0;
  int64_t channels = 0, bits = 0;  // bits of a sample, where that says something
  std::vector<MediaPacket> packets;
  double start = 0;         // seconds of the file's clock at which the first one is heard
  double last = 0;          // and the last block, all of whose packets have its time
  size_t in_last = 0;       // packets of that block
  double tick = 0;          // seconds that its clock can tell apart
  int64_t delay_ns = 0;     // of what the first packets hold, not to be heard
  int64_t discards_ns = 0;  // of what the last one holds, not to be heard
};

// Errors are those of sounds (HR0350 to HR0352); HR0358 where there is no track of sound.
Result<MkvSound> read_mkv_sound(const ByteRanges& file);

}  // namespace headrace
