// SPDX-License-Identifier: Apache-2.0
// What the sequence parameter sets of an H.264 track say (ITU-T H.264, 7.3.2.1.1).
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// Whether its pictures may be coded as fields, or hold blocks that are (frame_mbs_only_flag is 0).
// True where the parameters (avcC) do not tell.
bool may_hold_h264_fields(std::span<const uint8_t> avcc);

}  // namespace headrace
