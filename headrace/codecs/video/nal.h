// SPDX-License-Identifier: Apache-2.0
// Classifies packets of H.264 and HEVC by the first bytes of their NAL units: whether decoding can
// begin with a packet, and whether other packets need it (ITU-T H.264, 7.4.1; H.265, 7.4.2.2).
//
// Units are found only by the lengths before them: the start code 00 00 01, which separates them in
// streams, would be a length of 256 to 511 in files. For anything unparseable, assumes the case
// that needs the most decoding.
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
// From the parameters (avcC, hvcC; ISO/IEC 14496-15). Empty for other codecs, and if the parameters
// are invalid.
std::optional<NalFraming> nal_framing(VideoCodec codec, std::span<const uint8_t> parameters);

// Whether frames shown at or after this one are correct if decoding begins here.
bool begins_decoding(const NalFraming& framing, std::span<const uint8_t> packet);
// An IDR picture: neither it nor later ones refer to pictures before it. Not used for HEVC.
bool is_idr(const NalFraming& framing, std::span<const uint8_t> packet);
// True only if no other packet can need it.
bool is_droppable(const NalFraming& framing, std::span<const uint8_t> packet);

// The x264 build that made the stream, if the packet specifies it.
std::optional<int> x264_build(const NalFraming& framing, std::span<const uint8_t> packet);

}  // namespace headrace
