// SPDX-License-Identifier: Apache-2.0
// The first audio track of a Matroska or WebM file (RFC 9559): positions and times of its packets.
// Parses hostile bytes, in time and memory proportional to their number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/codecs/media/media_packet.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

struct MkvAudioTrack {
  std::string codec;                // "A_OPUS"
  std::vector<uint8_t> parameters;  // CodecPrivate
  double sample_rate = 0;
  int64_t channels = 0, bits = 0;  // bits: per sample, if applicable
  std::vector<MediaPacket> packets;
  double start = 0;         // time of the first sample on the file's clock, in seconds
  double last = 0;          // time of the last block, which all of its packets have
  size_t in_last = 0;       // packets in that block
  double tick = 0;          // clock resolution in seconds
  int64_t delay_ns = 0;     // to discard at the start of the first packets (CodecDelay)
  int64_t discards_ns = 0;  // to discard at the end of the last packet (DiscardPadding)
};

// Returns audio errors (HR0350 to HR0352); HR0358 if there is no audio track.
Result<MkvAudioTrack> read_mkv_audio_track(const ByteRanges& file);

}  // namespace headrace
