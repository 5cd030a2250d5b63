// SPDX-License-Identifier: Apache-2.0
// From packets to frames: which are shown, and in what order. What all containers share.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/codecs/video/video_track.h"

namespace headrace {

// Whether the packet brings no frame that is shown: of VP8 and VP9, which say so in the first byte,
// and make pictures that others are made from alone. Other codecs have one frame a packet.
bool brings_no_frame(VideoCodec codec, std::span<const uint8_t> packet);

// Sets track.frames: all packets whose pts lies in [begin, end), and which bring a frame, by pts;
// those of one pts as they are decoded.
void order_frames(std::span<const uint8_t> file, int64_t begin, int64_t end, VideoTrack& track);

}  // namespace headrace
