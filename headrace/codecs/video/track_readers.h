// SPDX-License-Identifier: Apache-2.0
// The readers of video containers: each returns the file's first video track, without decoding.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// MP4, MOV and 3GP (ISO/IEC 14496-12). Skips chapter thumbnails and disabled tracks if there is
// another.
Result<VideoTrack> read_mp4_track(const ByteRanges& file);
bool begins_like_mp4(std::span<const uint8_t> first_bytes);

// Matroska and WebM (RFC 9559): the first track that is not disabled. Visits block after block,
// because nothing else in such files has the positions of all blocks.
Result<VideoTrack> read_mkv_track(const ByteRanges& file);

// AVI, which stores packets in decoding order and without times: each packet takes one tick. For
// MPEG-4, the display order follows from the picture types, and both pictures of a packet that
// holds two (DivX, Xvid) become frames. Reads chunk by chunk and ignores indexes, which are the
// part of such files that is most often wrong.
Result<VideoTrack> read_avi_track(const ByteRanges& file);
bool begins_like_avi(std::span<const uint8_t> first_bytes);

}  // namespace headrace
