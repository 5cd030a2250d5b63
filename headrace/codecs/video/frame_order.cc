// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/frame_order.h"

#include <algorithm>

namespace headrace {
namespace {

bool vp9_brings_no_frame(std::span<const uint8_t> packet) {
  // frame_marker (2), profile (2, a bit more where it is 3), show_existing_frame, frame_type,
  // show_frame: "VP9 Bitstream & Decoding Process Specification", 6.2.
  const int first = packet[0];
  const int shift = (first & 0x30) == 0x30 ? 1 : 0;
  const bool existing = first >> (3 - shift) & 1, shown = first >> (1 - shift) & 1;
  if (existing || shown) return false;
  // Several frames in one packet have an index at its end; the last of them is shown.
  return (packet.back() & 0xE0) != 0xC0;
}

}  // namespace

bool brings_no_frame(VideoCodec codec, std::span<const uint8_t> packet) {
  if (packet.empty()) return true;
  if (codec == VideoCodec::kVP8) return !(packet[0] & 0x10);  // RFC 6386, 9.1
  return codec == VideoCodec::kVP9 && vp9_brings_no_frame(packet);
}

void order_frames(std::span<const uint8_t> file, int64_t begin, int64_t end, VideoTrack& track) {
  const bool may_hide = track.codec == VideoCodec::kVP8 || track.codec == VideoCodec::kVP9;
  track.frames.clear();
  track.frames.reserve(track.packets.size());
  bool in_order = true;
  int64_t last = INT64_MIN;
  for (uint32_t i = 0; i < track.packets.size(); ++i) {
    const MediaPacket& packet = track.packets[i];
    if (packet.pts < begin || packet.pts >= end) continue;
    if (may_hide && brings_no_frame(track.codec, file.subspan(size_t(packet.offset), packet.size)))
      continue;
    in_order = in_order && last <= packet.pts;
    last = packet.pts;
    track.frames.push_back(i);
  }
  if (in_order) return;
  std::sort(track.frames.begin(), track.frames.end(), [&](uint32_t a, uint32_t b) {
    const int64_t one = track.packets[a].pts, other = track.packets[b].pts;
    return one < other || (one == other && a < b);
  });
}

}  // namespace headrace
