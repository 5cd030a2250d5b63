// SPDX-License-Identifier: Apache-2.0
// Determines which packets are shown as frames, in what order, and which are key frames. Shared by
// all containers.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// Sets track.frames: all packets with pts in [begin, end) that contain a visible frame, by pts;
// those with equal pts in decoding order. VP8 and VP9 packets are inspected, because some contain
// only a reference frame; other codecs have one frame per packet. Returns errors of reading the
// file.
Result<void> order_frames(const ByteRanges& file, int64_t begin, int64_t end, VideoTrack& track);

// Whether a packet is a key frame according to its own bytes, for codecs whose frames begin with
// that information. A container may mark any packet as a key frame (those without a list of key
// frames mark all), and some decoders output pictures even if decoding starts in between. For H.264
// and HEVC: nal.h.
//
// False if a packet of MPEG-4, VP8 or VP9 begins with a frame that depends on others; true for
// codecs that are not inspected (each frame of MJPEG is independent; an AV1 decoder can only begin
// at such packets).
bool may_be_key(VideoCodec codec, std::span<const uint8_t> packet);

}  // namespace headrace
