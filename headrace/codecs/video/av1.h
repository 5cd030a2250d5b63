// SPDX-License-Identifier: Apache-2.0
// Packets of AV1 by the headers of their units (AV1 Bitstream & Decoding
// Process Specification, 5.3 to 5.9): whether others need them.
//
// A frame is kept for others in those of eight places that its refresh_frame_flags name, and all
// that a later frame may take of it (pixels, motion, probabilities, film grain) lies there; so one
// that names none is needed by nobody. Whatever does not fit, or is rare (several layers, a model
// of the decoder's buffers), is taken for what is needed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace headrace {

// Input for reading the headers of frames.
struct Av1Sequence {
  bool has_frame_ids = false;
  int frame_id_bits = 0;
  bool chooses_screen_content = false;  // each frame says it; else it is as in
  bool screen_content = false;
  bool chooses_integer_motion = false;
  int order_hint_bits = 0;
};
// The sequence header in a packet, or in the parameters (av1C; AV1 in ISOBMFF, 2.3). None if
// there is none, and of the rare kinds.
std::optional<Av1Sequence> av1_sequence_in(std::span<const uint8_t> packet);
std::optional<Av1Sequence> av1_sequence_of(std::span<const uint8_t> parameters);
// It has a header of a sequence, whatever that is.
bool has_av1_sequence(std::span<const uint8_t> packet);

// No other packet needs it, whatever comes.
bool is_droppable(const Av1Sequence& sequence, std::span<const uint8_t> packet);

}  // namespace headrace
