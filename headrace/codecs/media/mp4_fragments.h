// SPDX-License-Identifier: Apache-2.0
// The packets that an MP4 track has in fragments (ISO/IEC 14496-12, 8.8): moof boxes after the moov
// box, each with the packets of some seconds. No packet is read.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "headrace/base/error.h"
#include "headrace/codecs/media/mp4_sample_table.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// Defaults of moov for all fragments of a track, in its box trex.
struct Mp4FragmentDefaults {
  uint32_t description = 1, duration = 0, size = 0, flags = 0;
};
// By track: read once, because there may be as many fragments as tracks.
using Mp4DefaultsByTrack = std::map<uint32_t, Mp4FragmentDefaults>;
Mp4DefaultsByTrack read_mp4_fragment_defaults(std::span<const uint8_t> moov);

// Appends the track's packets of the box moof, whose header is at `at`.
Result<void> read_mp4_fragment(const ByteRanges& file, std::span<const uint8_t> moof, size_t at,
                               const Mp4DefaultsByTrack& defaults, uint32_t track, Mp4Packets& out);

}  // namespace headrace
