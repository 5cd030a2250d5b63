// SPDX-License-Identifier: Apache-2.0
// Whether a packet is a key by its own bytes, for codecs whose frames begin with that information.
// A container may call any packet a key: those without a list of keys call all of them so, and from
// some decoders pictures come out even where decoding begins in between. Of H.264 and HEVC: nal.h.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/codecs/video/video_track.h"

namespace headrace {

// False where a packet of MPEG-4, VP8 or VP9 begins with a frame that needs others; true of codecs
// that are not looked at (each frame of MJPEG is one; a decoder of AV1 begins at no other packet).
bool may_be_key(VideoCodec codec, std::span<const uint8_t> packet);

}  // namespace headrace
