// SPDX-License-Identifier: Apache-2.0
// Determines whether other packets need an AV1 packet, from the headers of the packet's units (AV1
// Bitstream & Decoding Process Specification, 5.3 to 5.9).
//
// A frame's refresh_frame_flags select the slots, of eight, that store it. Later frames can only
// use what a slot stores (pixels, motion, probabilities, film grain), so a frame that selects no
// slot is not needed by other frames. Anything unparseable or rare (several layers, a decoder
// model) counts as needed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace headrace {

// What is needed to parse frame headers.
struct Av1Sequence {
  bool has_frame_ids = false;
  int frame_id_bits = 0;
  bool chooses_screen_content = false;  // specified per frame; otherwise fixed below
  bool screen_content = false;
  bool chooses_integer_motion = false;
  int order_hint_bits = 0;
};
// The sequence header in a packet, or in the parameters (av1C; AV1 in ISOBMFF, 2.3). Empty if there
// is none, or if it is of a rare type.
std::optional<Av1Sequence> av1_sequence_in(std::span<const uint8_t> packet);
std::optional<Av1Sequence> av1_sequence_of(std::span<const uint8_t> parameters);
// Whether it contains a sequence header, valid or not.
bool has_av1_sequence(std::span<const uint8_t> packet);

// True only if no other packet can need it.
bool is_droppable(const Av1Sequence& sequence, std::span<const uint8_t> packet);

}  // namespace headrace
