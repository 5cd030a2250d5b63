// SPDX-License-Identifier: Apache-2.0
// Whether a packet is a key frame according to its own bytes, for codecs whose frames begin with
// that information. A container may mark any packet as a key frame (those without a list of key
// frames mark all), and some decoders output pictures even if decoding starts in between. For H.264
// and HEVC: nal.h.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/codecs/video/video_track.h"

namespace headrace {

// False if a packet of MPEG-4, VP8 or VP9 begins with a frame that depends on others; true for
// codecs that are not inspected (each frame of MJPEG is independent; an AV1 decoder can only begin
// at such packets).
bool may_be_key(VideoCodec codec, std::span<const uint8_t> packet);

}  // namespace headrace
