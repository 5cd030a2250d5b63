// SPDX-License-Identifier: Apache-2.0
// The sequence parameter sets of an H.264 track (ITU-T H.264, 7.3.2.1.1), and its slices.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// Whether its pictures may be coded as fields, or contain field-coded blocks (frame_mbs_only_flag
// is 0). True if the parameters (avcC) do not say.
bool may_hold_h264_fields(std::span<const uint8_t> avcc);
// Whether a packet begins with a field coded as a picture of its own (field_pic_flag is 1).
bool is_h264_field(std::span<const uint8_t> avcc, std::span<const uint8_t> packet);

}  // namespace headrace
