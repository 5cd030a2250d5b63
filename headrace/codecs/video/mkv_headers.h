// SPDX-License-Identifier: Apache-2.0
// The part of a Matroska file before its clusters: its clock, and how its video is coded.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/codecs/media/ebml.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

struct MkvHeaders {
  VideoTrack track;          // without packets
  uint64_t number = 0;       // number of the track
  int64_t delay = 0;         // ticks by which packets come later than they are shown
  int64_t duration = 0;      // default duration of a packet in ticks; 0: unknown
  uint64_t clusters = 0;     // offset of the first cluster
  uint64_t segment_end = 0;  // end of the file if the size is unknown
};

// Reads up to the first cluster.
Result<MkvHeaders> read_mkv_headers(const ByteRanges& file);

}  // namespace headrace
