// SPDX-License-Identifier: Apache-2.0
// The packets of an MP4 track, and the part that is shown, with its times (the edit list, 8.6.6).
// Reads the sample table (ISO/IEC 14496-12, 8.6 and 8.7) or the fragments (8.8): moof boxes after
// the moov box, each of which describes the packets of some seconds. Does not read packets. Takes
// time and memory proportional to the file.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/codecs/media/media_packet.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// In decoding order; times are the media's own, without edits applied.
struct Mp4Packets {
  std::vector<MediaPacket> packets;
  std::vector<uint32_t> durations;  // of each, in ticks
  uint64_t bytes = 0;               // total of all packets: never more than the file's
  int64_t end = 0;                  // decoding time of the next one
  uint32_t description = 0;         // number of the stsd entry that they are coded with; 0: no
                                    // packet yet

  // Appends a packet; empty ones are not frames and are ignored. HR0362 if it extends past the end
  // of the file, HR0365 if there are too many, HR0361 if packets overlap so much that their total
  // exceeds the file.
  Result<void> add(const ByteRanges& file, MediaPacket packet, uint32_t duration);
  // HR0363 if it differs from the stsd entry of the previous packets.
  Result<void> coded_by(uint32_t entry);
};

Result<void> read_mp4_sample_table(const ByteRanges& file, std::span<const uint8_t> stbl,
                                   Mp4Packets& out);

// The sample at media time t in [begin, end) is shown at time t + delay of the file.
struct Mp4Edits {
  int64_t begin = INT64_MIN, end = INT64_MAX, delay = 0;
};

// Supports an empty edit followed by one piece of the media at normal speed; adjacent pieces are
// merged. HR0363 for anything else.
Result<Mp4Edits> read_mp4_edits(std::span<const uint8_t> elst, uint32_t movie_ticks_per_second,
                                uint32_t media_ticks_per_second);

// Defaults for all fragments of a track, from its trex box in moov.
struct Mp4FragmentDefaults {
  uint32_t description = 1, duration = 0, size = 0, flags = 0;
};
// By track ID. Read once per file, because there may be many fragments and many tracks.
using Mp4DefaultsByTrack = std::map<uint32_t, Mp4FragmentDefaults>;
Mp4DefaultsByTrack read_mp4_fragment_defaults(std::span<const uint8_t> moov);

// Appends the track's packets of the box moof, whose header is at `at`.
Result<void> read_mp4_fragment(const ByteRanges& file, std::span<const uint8_t> moof, size_t at,
                               const Mp4DefaultsByTrack& defaults, uint32_t track, Mp4Packets& out);

}  // namespace headrace
