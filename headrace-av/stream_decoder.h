// SPDX-License-Identifier: Apache-2.0
// One stream's decoder: packets in, wanted frames out.
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
  // The frame is there until it returns. False: no more are wanted.
  virtual bool take(const Frame& frame) = 0;
};

class StreamDecoder {
 public:
  explicit StreamDecoder(FrameMemory& memory);
  Trouble open(const Request& request, std::span<const uint8_t> parameters);
  void close() { context_.reset(); }  // its frames are given back
  // Ends early where the taker wants no more. `fed`: as Reply::number says it.
  Trouble decode(const Request& request, std::span<const Packet> packets,
                 std::span<const uint8_t> bytes, FrameTaker& taker, uint32_t& fed);

 private:
  Trouble feed(const Packet& packet, std::span<const uint8_t> bytes);
  Trouble receive();  // all frames that there are
  Trouble finish();   // and those that were held back
  Trouble give();     // the frame that was received
  bool is_damaged();  // whether the frame is
  Trouble trouble(int error) const;

  FrameMemory& memory_;
  LibraryFrame frame_, copy_;
  LibraryPacket packet_;
  Context context_;
  Packet fed_;
  uint32_t first_ = 0;  // packet of the request
  FrameTaker* taker_ = nullptr;
  std::unordered_set<uint32_t> given_;  // numbers of packets whose frames came
  bool enough_ = false;
  bool is_doubtful_ = false;  // since the last restart the library has told of an error
  bool is_lost_ = false;      // packets fed ahead are damaged
  bool is_whole_ = false;     // the frame was, that the last restart began with
};

}  // namespace headrace::media
