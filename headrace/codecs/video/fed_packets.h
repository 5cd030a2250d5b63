// SPDX-License-Identifier: Apache-2.0
// Records the packets that an open decoder was fed. Tells whether the decoder can continue after
// these packets to the frames of another plan, with the same result as a decode from the beginning
// of the file. Consecutive windows of a video then cost only their new frames.
//
// Two videos count as the same if their tables are equal and the bytes of the fed packets have the
// same hash, even if they are in different files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/codecs/video/frame_plan.h"
#include "headrace/codecs/video/video_track.h"

namespace headrace {

class FedPackets {
 public:
  // Must be called when a decoder was opened for the track; nothing was fed yet.
  void begin(const VideoTrack& track);
  // Must be called when the packet was fed, after the others or after a restart.
  void add(uint32_t packet, bool restart, std::span<const uint8_t> bytes);
  // Must be called when the decoder cannot continue; the track is kept.
  void end() { packets_.clear(); }

  // Whether the track has the tables that were passed to begin().
  bool is_of(const VideoTrack& track) const;
  // How many of the plan's feeds the decoder has already received: it continues with the next one.
  // 0 if it has to restart. REQUIRES: the plan's packets are inside the file.
  size_t known_of(const VideoTrack& track, const ByteRanges& file, const FramePlan& plan) const;
  // Packets before this one will not be needed.
  void forget_before(uint32_t packet);

  size_t size() const { return packets_.size(); }
  uint32_t operator[](size_t i) const { return packets_[i].number; }

 private:
  struct Fed {
    uint32_t number = 0;
    uint64_t hash = 0;
  };

  VideoCodec codec_ = VideoCodec::kH264;
  int width_ = 0, height_ = 0;
  std::vector<uint8_t> parameters_;
  size_t track_packets_ = 0;
  std::vector<Fed> packets_;  // since the last restart; numbers ascend
};

}  // namespace headrace
