// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/key_frame.h"

#include <cstring>

namespace headrace {
namespace {

// ISO/IEC 14496-2, 6.2.5: the two bits behind a picture's start code are its type, 0 of those that
// need no other.
bool is_mpeg4_key(std::span<const uint8_t> packet) {
  constexpr uint8_t kPicture = 0xB6;
  for (size_t at = 2; at + 2 < packet.size(); ++at) {
    const void* const found = std::memchr(packet.data() + at, 1, packet.size() - 2 - at);
    if (!found) return false;
    at = static_cast<size_t>(static_cast<const uint8_t*>(found) - packet.data());
    if (packet[at - 1] == 0 && packet[at - 2] == 0 && packet[at + 1] == kPicture) {
      return packet[at + 2] >> 6 == 0;
    }
  }
  return false;
}

// frame_marker, profile, show_existing_frame, frame_type (6.2): a frame that exists already needs
// it.
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
