// SPDX-License-Identifier: Apache-2.0
// The pictures in a stream of MPEG-4 (ISO/IEC 14496-2): where they begin, their types, and whether
// they have any content. With containers without times (AVI) only this gives the order in which
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
  kBetween = 2,  // needs the one before and the one after, which is decoded first; nobody needs it
  kSprite = 3    // as kForward
};

struct Mpeg4Picture {
  size_t at = 0;  // its start code
  Mpeg4Kind kind = Mpeg4Kind::kIntra;
  std::span<const uint8_t> header;  // bytes after the start code, to the end
};

// The first picture at or behind `from`; none where no start code of one is.
std::optional<Mpeg4Picture> next_mpeg4_picture(std::span<const uint8_t> bytes, size_t from = 0);

// The bytes before the first picture and a group's header, with which a decoder is opened.
std::span<const uint8_t> mpeg4_parameters(std::span<const uint8_t> first_packet);

// The layer's parameters, as far as they are needed to read the headers of its pictures.
struct Mpeg4Layer {
  int time_bits = 0;            // of vop_time_increment; 0: unknown
  bool interlaced = false;      // its pictures may hold two fields
  bool packs_pictures = false;  // DivX: two pictures in one packet, and a packet of none later
  bool names_encoder = false;   // tells a decoder whose rounding to use
  // Learns from the parameters or a packet; what these leave out stays.
  void learn(std::span<const uint8_t> bytes);
  // A picture that is said to be the one before again, of which a decoder makes no frame. False
  // where that cannot be told.
  bool is_empty(const Mpeg4Picture& picture) const;
};

}  // namespace headrace
