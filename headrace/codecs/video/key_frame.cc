// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/key_frame.h"

#include <optional>

#include "headrace/codecs/video/mpeg4_pictures.h"

namespace headrace {
namespace {

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

bool may_be_key(VideoCodec codec, std::span<const uint8_t> packet) {
  if (codec == VideoCodec::kMPEG4) return is_mpeg4_key(packet);
  if (packet.empty()) return false;
  if (codec == VideoCodec::kVP8) return !(packet[0] & 1);  // RFC 6386, 9.1
  return codec != VideoCodec::kVP9 || is_vp9_key(packet[0]);
}

}  // namespace headrace
