// SPDX-License-Identifier: Apache-2.0
// Decoders of one stream: packets in, requested frames or all samples out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_set>

extern "C" {
#include <libavcodec/avcodec.h>
}

#include "frame_memory.h"
#include "headrace/codecs/media/media_protocol.h"
#include "library.h"

namespace headrace::media {

class FrameTaker {
 public:
  virtual ~FrameTaker() = default;
  // The frame is valid until it returns. False: no more are needed.
  virtual bool take(const Frame& frame) = 0;
};

// Video.
class StreamDecoder {
 public:
  explicit StreamDecoder(FrameMemory& memory);
  FailureReport open(const Request& request, std::span<const uint8_t> parameters);
  void close() { context_.reset(); }  // its memory for frames is needed
  // Ends early if the receiver needs no more. `fed`: see Reply::number.
  FailureReport decode(const Request& request, std::span<const Packet> packets,
                       std::span<const uint8_t> bytes, FrameTaker& taker, uint32_t& fed);

 private:
  FailureReport feed(const Packet& packet, std::span<const uint8_t> bytes);
  FailureReport receive();  // all available frames
  FailureReport finish();   // including those held back
  FailureReport give();     // the frame that was received
  bool is_damaged();        // whether the frame is damaged
  FailureReport report(int error) const;

  FrameMemory& memory_;
  LibraryFrame frame_, copy_;
  LibraryPacket packet_;
  Context context_;
  Packet fed_;
  uint32_t first_ = 0;  // packet of the request
  FrameTaker* taker_ = nullptr;
  std::unordered_set<uint32_t> given_;  // numbers of packets whose frames were output
  bool enough_ = false;
  bool is_suspect_ = false;  // the library has reported an error since the last restart
  bool is_lost_ = false;     // packets fed ahead are damaged
  bool is_whole_ = false;    // the last restart's first frame was undamaged
};

// AAC.
class AudioStreamDecoder {
 public:
  explicit AudioStreamDecoder(FrameMemory& memory);
  FailureReport open(const Request& request, std::span<const uint8_t> parameters);
  // Writes the samples into the frames' memory, and returns how many there are.
  FailureReport decode(std::span<const Packet> packets, std::span<const uint8_t> bytes,
                       Samples& samples);

 private:
  FailureReport take(const Packet& packet, Samples& samples);

  FrameMemory& memory_;
  LibraryFrame frame_;
  LibraryPacket packet_;
  Context context_;
};

}  // namespace headrace::media
