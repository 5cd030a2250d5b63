// SPDX-License-Identifier: Apache-2.0
// The video track of a Matroska or WebM file (RFC 9559).
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// The first video track that is not disabled. Visits block after block, because nothing else in
// such files has the positions of all blocks.
Result<VideoTrack> read_mkv_track(const ByteRanges& file);

}  // namespace headrace
