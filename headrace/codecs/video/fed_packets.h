// SPDX-License-Identifier: Apache-2.0
// The packets that an open decoder was fed, and whether it can go on from there to another plan's
// frames, as decoding the file from its begin would, instead of opening one and feeding it what
// this one has seen. Windows that follow one another in a video cost what is new in them.
//
// A video is the one before if its tables are and what was fed of it has the same bytes, by their
// hash: it does not matter where they come from.
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
  // A decoder was opened for the track, and was fed nothing yet.
  void begin(const VideoTrack& track);
  // It was fed that packet, behind the others, or after it had forgotten these.
  void add(uint32_t packet, bool restart, std::span<const uint8_t> bytes);
  // It cannot go on; the track is still known.
  void end() { packets_.clear(); }

  // The track's tables are those of begin().
  bool is_of(const VideoTrack& track) const;
  // How many of the plan's feeds the decoder knows: it goes on with the next one. 0 where it has to
  // begin anew. REQUIRES: the plan's packets lie in the file.
  size_t known_of(const VideoTrack& track, const ByteRanges& file, const FramePlan& plan) const;
  // Packets before this one will not be asked for.
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
