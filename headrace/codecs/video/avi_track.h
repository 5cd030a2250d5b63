// SPDX-License-Identifier: Apache-2.0
// The pictures of an AVI file, which keeps packets in the order of decoding and no times: a packet
// takes a tick. Of MPEG-4 the order of showing is that of the kinds of its pictures, and of packets
// that hold two (DivX, Xvid) each picture becomes one of its own.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

bool begins_like_avi(std::span<const uint8_t> first_bytes);
// The first stream of pictures. Goes from chunk to chunk and believes no index: these are what is
// most often wrong with such files.
Result<VideoTrack> read_avi_track(const ByteRanges& file);

}  // namespace headrace
