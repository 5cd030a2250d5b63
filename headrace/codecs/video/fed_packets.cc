// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/fed_packets.h"

#include <algorithm>

#include "headrace/kernels/content_hash.h"

namespace headrace {
namespace {

// REQUIRES: the packet is inside the file.
bool has_hash(const ByteRanges& file, const MediaPacket& packet, uint64_t hash) {
  const Result<std::span<const uint8_t>> bytes =
      file.at(static_cast<uint64_t>(packet.offset), packet.size);
  return bytes && content_hash(*bytes) == hash;
}

}  // namespace

void FedPackets::begin(const VideoTrack& track) {
  codec_ = track.codec;
  width_ = track.width;
  height_ = track.height;
  parameters_ = track.parameters;
  track_packets_ = track.packets.size();
  packets_.clear();
}

void FedPackets::add(uint32_t packet, bool restart, std::span<const uint8_t> bytes) {
  if (restart) packets_.clear();
  packets_.push_back({packet, content_hash(bytes)});
}

bool FedPackets::is_of(const VideoTrack& track) const {
  return track_packets_ > 0 && track_packets_ == track.packets.size() && codec_ == track.codec &&
         width_ == track.width && height_ == track.height && parameters_ == track.parameters;
}

size_t FedPackets::known_of(const VideoTrack& track, const ByteRanges& file,
                            const FramePlan& plan) const {
  if (packets_.empty() || !is_of(track)) return 0;
  const uint32_t last = packets_.back().number;
  const auto is_seen = [&](uint32_t packet) { return packet <= last; };
  // A frame that was already output cannot be output again.
  if (std::ranges::any_of(plan.kept, is_seen)) return 0;
  const auto next = std::ranges::find_if_not(plan.feeds, is_seen, &Feed::packet);
  if (next == plan.feeds.begin() || next == plan.feeds.end() || next->restart) return 0;
  if (std::any_of(next, plan.feeds.end(), [&](const Feed& feed) { return is_seen(feed.packet); })) {
    return 0;
  }
  for (auto feed = plan.feeds.begin(); feed != next; ++feed) {
    if (!std::ranges::binary_search(packets_, feed->packet, {}, &Fed::number)) return 0;
  }
  auto fed = std::ranges::lower_bound(packets_, plan.feeds.front().packet, {}, &Fed::number);
  for (; fed != packets_.end(); ++fed) {
    const MediaPacket& packet = track.packets[fed->number];
    const auto offset = static_cast<uint64_t>(packet.offset);
    if (packet.offset < 0 || offset > file.size() || packet.size > file.size() - offset ||
        !has_hash(file, packet, fed->hash)) {
      return 0;
    }
  }
  return static_cast<size_t>(next - plan.feeds.begin());
}

void FedPackets::forget_before(uint32_t packet) {
  std::erase_if(packets_, [&](const Fed& fed) { return fed.number < packet; });
}

}  // namespace headrace
