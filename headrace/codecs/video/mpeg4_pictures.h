// SPDX-License-Identifier: Apache-2.0
// The pictures in a stream of MPEG-4 (ISO/IEC 14496-2): where they begin, their types, and whether
// they have any content. For containers without times (AVI) this determines the order in which
// frames are shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace headrace {

enum class Mpeg4Kind : uint8_t {
  kIntra = 0,  // needs no other picture
  kForward = 1,
  kBetween = 2,  // needs the ones shown before and after it, the latter decoded first; no picture
                 // needs it
  kSprite = 3    // like kForward
};

struct Mpeg4Picture {
  size_t at = 0;  // its start code
  Mpeg4Kind kind = Mpeg4Kind::kIntra;
  std::span<const uint8_t> header;  // bytes after the start code, to the end
};

// The first picture at or after `from`; empty if there is no picture start code.
std::optional<Mpeg4Picture> next_mpeg4_picture(std::span<const uint8_t> bytes, size_t from = 0);

// The bytes before the first picture and group header, used to open a decoder.
std::span<const uint8_t> mpeg4_parameters(std::span<const uint8_t> first_packet);

// The layer's parameters that are needed to read the headers of its pictures.
struct Mpeg4Layer {
  int time_bits = 0;            // bits of vop_time_increment; 0: unknown
  bool interlaced = false;      // its pictures may be interlaced
  bool packs_pictures = false;  // DivX packed bitstream: two pictures in one packet, and an empty
                                // packet later
  bool names_encoder = false;   // by user data, which tells a decoder the rounding to use
  // Updates from the parameters or a packet; members that they do not specify are unchanged.
  void learn(std::span<const uint8_t> bytes);
  // A picture that repeats the previous one, for which a decoder outputs no frame. False if
  // unknown.
  bool is_empty(const Mpeg4Picture& picture) const;
};

}  // namespace headrace
