// SPDX-License-Identifier: Apache-2.0
// AAC: packets in, all of their samples out.
#pragma once

#include <cstdint>
#include <span>

#include "frame_memory.h"
#include "headrace/codecs/media/media_protocol.h"
#include "library.h"

namespace headrace::media {

class SoundDecoder {
 public:
  explicit SoundDecoder(FrameMemory& memory);
  Trouble open(const Request& request, std::span<const uint8_t> parameters);
  // Writes the samples into the frames' memory, and returns how many there are.
  Trouble decode(std::span<const Packet> packets, std::span<const uint8_t> bytes, Samples& samples);

 private:
  Trouble take(const Packet& packet, Samples& samples);

  FrameMemory& memory_;
  LibraryFrame frame_;
  LibraryPacket packet_;
  Context context_;
};

}  // namespace headrace::media
