// SPDX-License-Identifier: Apache-2.0
// Any bytes as an animation: an error, or complete frames.
#include <algorithm>
#include <cstdlib>

#include "headrace/codecs/video/animations/animation.h"
#include "headrace/codecs/video/video_file.h"

namespace {

using namespace headrace;

class Reading final : public FrameSink {
 public:
  Result<void> frame(size_t number, const YuvFrame& frame) override {
    if (number != seen++) std::abort();
    for (size_t p = 0; p < 3; ++p) {
      for (int y = 0; y < frame.height; ++y) {
        for (int x = 0; x < frame.width; ++x) {
          sum_ = sum_ + frame.plane[p][y * frame.stride[p] + x];
        }
      }
    }
    return {};
  }
  size_t seen = 0;

 private:
  volatile unsigned sum_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Buffer file(size);
  std::copy(data, data + size, file.data());
  const VideoContainer* const container = video_container_of(file.bytes());
  if (!container) return 0;
  const Result<VideoTrack> track = container->read(file.bytes());
  if (!track || !animation_of(track->codec)) return 0;
  constexpr size_t kMaxFrames = 64;
  FramePlan plan;
  for (uint32_t i = 0; i < std::min(track->packets.size(), kMaxFrames); ++i) {
    plan.feeds.push_back({i, track->packets[i].key});
    plan.kept.push_back(i);
  }
  Reading sink;
  const Result<void> done =
      make_animation_decoder({.max_pixels = 1 << 14})->decode(*track, file.bytes(), plan, sink);
  if (done && sink.seen != plan.kept.size()) std::abort();
  return 0;
}
