// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/frame_ranges.h"

#include <algorithm>
#include <functional>

#include "headrace/codecs/video/frame_plan.h"

namespace headrace {
namespace {

// Larger gaps between packets (audio, or another layout) are not read.
constexpr uint64_t kMaxGap = uint64_t{64} << 10;

class Ranges {
 public:
  explicit Ranges(const VideoTrack& track) : packets_(track.packets) {}

  // Where decoding for a picture shown at this time begins, according to the container: as in
  // plan_frames(). At this packet or before.
  uint32_t start_of(uint32_t packet, int64_t shown) const {
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
    const auto overlap = [](const PacketRange& one, const PacketRange& next) {
      return next.offset < one.offset + one.bytes;
    };
    if (std::ranges::adjacent_find(out_, overlap) != out_.end()) join(0);
    for (uint64_t gap = kMaxGap; out_.size() > kMaxRanges; gap *= 2) join(gap);
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

  // Joins ranges that overlap or are at most this far apart.
  void join(uint64_t gap) {
    size_t last = 0;
    for (const PacketRange& next : out_) {
      PacketRange& before = out_[last];
      const uint64_t end = before.offset + before.bytes;
      if (next.offset <= end || next.offset - end <= gap) {
        before.bytes = std::max(end, next.offset + next.bytes) - before.offset;
      } else {
        out_[++last] = next;
      }
    }
    out_.resize(last + 1);
  }

  const std::vector<MediaPacket>& packets_;
  std::vector<PacketRange> out_;
};

}  // namespace

std::vector<PacketRange> ranges_of_frames(const VideoTrack& track,
                                          std::span<const uint32_t> frames) {
  if (frames.empty()) return {};
  std::vector<uint32_t> packets;
  packets.reserve(frames.size());
  for (const uint32_t frame : frames) packets.push_back(track.frames[frame]);
  std::ranges::sort(packets, std::greater());
  // FramePlan::ahead.
  const uint32_t last = packets.front();
  uint32_t end = last + 1;
  if (delays_output(track.codec)) {
    const auto count = static_cast<uint32_t>(track.packets.size());
    while (end < count && end <= last + kFarthestAhead && !track.packets[end].key) ++end;
  }
  // From the last packet backwards, so that no packet is visited twice.
  Ranges ranges(track);
  uint32_t begin = ranges.start_of(last, track.packets[last].pts);
  for (const uint32_t packet : packets) {
    const int64_t shown = track.packets[packet].pts;
    if (packet < begin) {
      ranges.add(begin, end);
      begin = ranges.start_of(packet, shown);
      end = packet + 1;
    } else if (begin > 0 && track.packets[begin].pts > shown) {
      begin = ranges.start_of(begin - 1, shown);
    }
  }
  ranges.add(begin, end);
  return ranges.take();
}

}  // namespace headrace
