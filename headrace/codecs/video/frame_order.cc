// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/frame_order.h"

#include <algorithm>
#include <optional>

#include "headrace/codecs/video/mpeg4_pictures.h"

namespace headrace {
namespace {

bool vp8_brings_frame(int first) { return first & 0x10; }  // RFC 6386, 9.1

bool vp9_brings_frame(int first) {
  // frame_marker (2), profile (2, one bit more for profile 3), show_existing_frame, frame_type,
  // show_frame: "VP9 Bitstream & Decoding Process Specification", 6.2.
  const int shift = (first & 0x30) == 0x30 ? 1 : 0;
  const bool existing = first >> (3 - shift) & 1, shown = first >> (1 - shift) & 1;
  return existing || shown;
}

Result<bool> shows_frame(VideoCodec codec, const ByteRanges& file, const MediaPacket& packet) {
  if (codec != VideoCodec::kVP8 && codec != VideoCodec::kVP9) return true;
  if (packet.size == 0) return false;
  const auto offset = static_cast<uint64_t>(packet.offset);
  const Result<std::span<const uint8_t>> first = file.at(offset, 1);
  if (!first) return first.error();
  if (first->empty()) return false;
  if (codec == VideoCodec::kVP8) return vp8_brings_frame(first->front());
  if (vp9_brings_frame(first->front())) return true;
  // Several frames in one packet have an index at its end; the last of them is shown.
  const Result<std::span<const uint8_t>> last = file.at(offset + packet.size - 1, 1);
  if (!last) return last.error();
  return (last->front() & 0xE0) == 0xC0;
}

bool is_mpeg4_key(std::span<const uint8_t> packet) {
  const std::optional<Mpeg4Picture> picture = next_mpeg4_picture(packet);
  return picture && picture->kind == Mpeg4Kind::kIntra;
}

// frame_marker, profile, show_existing_frame, frame_type (6.2): showing an existing frame needs
// that frame.
bool is_vp9_key(uint8_t first) {
  const int shift = (first & 0x30) == 0x30 ? 1 : 0;
  return (first >> (2 - shift) & 3) == 0;
}

}  // namespace

Result<void> order_frames(const ByteRanges& file, int64_t begin, int64_t end, VideoTrack& track) {
  track.frames.clear();
  track.frames.reserve(track.packets.size());
  bool in_order = true;
  int64_t last = INT64_MIN;
  for (uint32_t i = 0; i < track.packets.size(); ++i) {
    const MediaPacket& packet = track.packets[i];
    if (packet.pts < begin || packet.pts >= end) continue;
    const Result<bool> shown = shows_frame(track.codec, file, packet);
    if (!shown) return shown.error();
    if (!*shown) continue;
    in_order = in_order && last <= packet.pts;
    last = packet.pts;
    track.frames.push_back(i);
  }
  if (in_order) return {};
  std::sort(track.frames.begin(), track.frames.end(), [&](uint32_t a, uint32_t b) {
    const int64_t one = track.packets[a].pts, other = track.packets[b].pts;
    return one < other || (one == other && a < b);
  });
  return {};
}

bool may_be_key(VideoCodec codec, std::span<const uint8_t> packet) {
  if (codec == VideoCodec::kMPEG4) return is_mpeg4_key(packet);
  if (packet.empty()) return false;
  if (codec == VideoCodec::kVP8) return !(packet[0] & 1);  // RFC 6386, 9.1
  return codec != VideoCodec::kVP9 || is_vp9_key(packet[0]);
}

}  // namespace headrace
