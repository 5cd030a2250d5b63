// SPDX-License-Identifier: Apache-2.0
// An MP4 track's packets in fragments (ISO/IEC 14496-12, 8.8): moof boxes after the moov box, each
// of which describes the packets of some seconds. Does not read packets.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "headrace/base/error.h"
#include "headrace/codecs/media/mp4_sample_table.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

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
