// SPDX-License-Identifier: Apache-2.0
// Determines whether decoding can begin with an H.264 or HEVC packet, and whether other packets
// need it, from the first bytes of its NAL units (ITU-T H.264, 7.4.1; H.265, 7.4.2.2).
//
// Units are found only by the lengths before them: the start code that separates units in streams,
// 00 00 01, would be a length of 256 to 511 in a file. A packet that cannot be parsed is assumed to
// be the case that needs the most decoding. Also reads the sequence parameter sets of H.264.
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

// Whether an H.264 track's pictures may be coded as fields, or contain field-coded blocks
// (frame_mbs_only_flag of its sequence parameter sets is 0: ITU-T H.264, 7.3.2.1.1). True if the
// parameters (avcC) do not say.
bool may_hold_h264_fields(std::span<const uint8_t> avcc);
// Whether a packet begins with a field coded as a picture of its own (field_pic_flag is 1).
bool is_h264_field(std::span<const uint8_t> avcc, std::span<const uint8_t> packet);

}  // namespace headrace
