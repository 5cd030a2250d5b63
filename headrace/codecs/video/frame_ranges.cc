// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/frame_ranges.h"

#include <algorithm>

#include "headrace/codecs/video/frame_plan.h"

namespace headrace {
namespace {

// Larger gaps between packets (audio, or another layout) are not read.
constexpr uint64_t kMaxGap = uint64_t{64} << 10;

class Ranges {
 public:
  explicit Ranges(const VideoTrack& track) : packets_(track.packets) {}

  // Where decoding for this packet begins, according to the container: as in plan_frames().
  uint32_t start_of(uint32_t packet) const {
    const int64_t shown = packets_[packet].pts;
    while (packet > 0 && !(packets_[packet].key && packets_[packet].pts <= shown)) --packet;
    return packet;
  }

  // The packets [begin, end), and those that share a range with them. REQUIRES: `begin` is a key
  // frame or 0.
  void add(uint32_t begin, uint32_t end) {
    while (begin < end) begin = add_range(begin);
  }

  std::vector<PacketRange> take() {
    std::ranges::sort(out_, {}, &PacketRange::offset);
    out_.erase(std::ranges::unique(out_).begin(), out_.end());
    return std::move(out_);
  }

 private:
  // Returns the first packet after the range.
  uint32_t add_range(uint32_t packet) {
    const auto offset = static_cast<uint64_t>(packets_[packet].offset);
    uint64_t end = offset + packets_[packet].size;
    for (++packet; packet < packets_.size() && !packets_[packet].key; ++packet) {
      const auto next = static_cast<uint64_t>(packets_[packet].offset);
      if (end - offset >= kRangeBytes || next < end || next - end > kMaxGap) break;
      end = next + packets_[packet].size;
    }
    out_.push_back({.offset = offset, .bytes = end - offset});
    return packet;
  }

  const std::vector<MediaPacket>& packets_;
  std::vector<PacketRange> out_;
};

}  // namespace

std::vector<PacketRange> ranges_of_frames(const VideoTrack& track,
                                          std::span<const uint32_t> frames) {
  if (frames.empty()) return {};
  Ranges ranges(track);
  uint32_t last = 0;
  for (const uint32_t frame : frames) {
    const uint32_t packet = track.frames[frame];
    last = std::max(last, packet);
    ranges.add(ranges.start_of(packet), packet + 1);
  }
  // FramePlan::ahead.
  uint32_t end = last + 1;
  if (delays_output(track.codec)) {
    const auto count = static_cast<uint32_t>(track.packets.size());
    while (end < count && end <= last + kFarthestAhead && !track.packets[end].key) ++end;
  }
  if (end > last + 1) ranges.add(ranges.start_of(last), end);
  return ranges.take();
}

}  // namespace headrace
