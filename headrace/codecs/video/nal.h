// SPDX-License-Identifier: Apache-2.0
// Packets of H.264 and HEVC by the first bytes of their units: whether
// decoding can begin with one, and whether others need it (ITU-T H.264, 7.4.1; H.265, 7.4.2.2).
//
// Units are found by the lengths in front of them, and by nothing else: 00 00 01, which divides
// them in streams, is a length of 256 to 511 in files. Whatever does not fit is taken for what
// needs the most decoding.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "headrace/codecs/video/video_track.h"

namespace headrace {

struct NalFraming {
  VideoCodec codec = VideoCodec::kH264;
  int length_bytes = 4;
  // With HEVC the highest temporal sub-layer; -1 if unknown.
  int highest_layer = -1;
};
// Out of the parameters (avcC, hvcC; ISO/IEC 14496-15). None for other codecs, and where they make
// no sense.
std::optional<NalFraming> nal_framing(VideoCodec codec, std::span<const uint8_t> parameters);

// Frames that are shown with this one or later are right if decoding begins here.
bool begins_decoding(const NalFraming& framing, std::span<const uint8_t> packet);
// An IDR picture: neither it nor what follows names pictures before it. Of HEVC no one asks.
bool is_idr(const NalFraming& framing, std::span<const uint8_t> packet);
// No other packet needs it, whatever comes.
bool is_droppable(const NalFraming& framing, std::span<const uint8_t> packet);

// The build of x264 that made the stream, where the packet says so.
std::optional<int> x264_build(const NalFraming& framing, std::span<const uint8_t> packet);

}  // namespace headrace
