// SPDX-License-Identifier: Apache-2.0
// The fuzz target of a video container: any bytes give an error, or a track whose packets are
// inside the file, whose frames are some of its packets in time order, and from which plans and
// ranges can be made. The build makes one for each folder fuzz/NAME that is named as a container's
// file.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/base/registry.h"
#include "headrace/codecs/video/frame_plan.h"
#include "headrace/codecs/video/frame_ranges.h"
#include "headrace/codecs/video/video_file.h"
#include "headrace/codecs/video/video_track.h"

namespace headrace {
namespace {

void require(bool promise) {
  if (!promise) std::abort();
}

// The ranges are inside the file, in order, and hold the packets of the frames.
void check_ranges(std::span<const uint8_t> file, const VideoTrack& track,
                  std::span<const uint32_t> wanted) {
  const std::vector<PacketRange> ranges = ranges_of_frames(track, wanted);
  require(!ranges.empty() && ranges.size() <= kMaxRanges);
  uint64_t end = 0;
  for (const PacketRange& range : ranges) {
    require(range.offset >= end && range.bytes > 0 && range.bytes <= file.size() - range.offset);
    end = range.offset + range.bytes;
  }
  for (const uint32_t frame : wanted) {
    const MediaPacket& packet = track.packets[track.frames[frame]];
    require(std::ranges::any_of(ranges, [&](const PacketRange& range) {
      const auto offset = uint64_t(packet.offset);
      return offset >= range.offset && offset + packet.size <= range.offset + range.bytes;
    }));
  }
}

void check_plan(std::span<const uint8_t> file, const VideoTrack& track) {
  std::vector<uint32_t> wanted;
  const size_t step = std::max<size_t>(1, track.frames.size() / 7);
  for (size_t i = 0; i < track.frames.size(); i += step) wanted.push_back(uint32_t(i));
  check_ranges(file, track, wanted);
  const FramePlan plan = plan_frames(track, file, wanted);
  require(plan.kept.size() == wanted.size());
  std::vector<int> fed(track.packets.size(), 0);
  for (const Feed& feed : plan.feeds) ++fed.at(feed.packet);
  for (size_t i = 0; i < wanted.size(); ++i) {
    require(plan.kept[i] == track.frames[wanted[i]] && fed[plan.kept[i]] >= 1);
  }
  // A packet that is only fed for what the decoder learns may be fed again.
  for (size_t i = 1; i < fed.size(); ++i) require(fed[i] <= 1);
}

void check(std::span<const uint8_t> file, const Result<VideoTrack>& track) {
  if (!track) return;
  uint64_t bytes = 0;
  for (const MediaPacket& packet : track->packets) {
    require(packet.offset >= 0 && packet.size > 0 && uint64_t(packet.offset) <= file.size());
    require(packet.size <= file.size() - uint64_t(packet.offset));
    bytes += packet.size;
  }
  require(bytes <= file.size() && !track->frames.empty());
  int64_t last = INT64_MIN;
  for (const uint32_t frame : track->frames) {
    require(frame < track->packets.size() && track->packets[frame].pts >= last);
    last = track->packets[frame].pts;
  }
  require(track->quarter_turns >= 0 && track->quarter_turns < 4);
  require(track->ticks_per_second > 0 && track->ticks_divisor > 0);
  require(track->parameters.size() <= file.size());
  check_plan(file, *track);
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  constexpr std::string_view kFile = HEADRACE_FUZZED;  // "mp4_track"
  static const VideoContainer& container =
      *Registry<VideoContainer>::find(kFile.substr(0, kFile.find('_')));
  check({data, size}, container.read({data, size}));
  return 0;
}
