// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/frame_bytes.h"

#include <algorithm>

namespace headrace {
namespace {

// Bytes of two pixels, luma and chroma: 3 for 8-bit 4:2:0, 12 for 16-bit 4:4:4.
constexpr size_t kUsual = 3, kMost = 12;

size_t bytes_of_two_pixels(const VideoTrack& track) {
  const std::vector<uint8_t>& said = track.parameters;
  const auto byte = [&](size_t at) { return at < said.size() ? said[at] : uint8_t{0xff}; };
  switch (track.codec) {
    case VideoCodec::kH264: {  // avcC: version, profile
      const uint8_t profile = byte(1);
      const bool usual = profile == 66 || profile == 77 || profile == 88 || profile == 100;
      return usual ? kUsual : profile == 110 ? 2 * kUsual : kMost;
    }
    case VideoCodec::kHEVC: {  // hvcC: version, profile space and tier and profile
      const int profile = byte(1) & 0x1f;
      return profile == 1 || profile == 3 ? kUsual : profile == 2 ? 2 * kUsual : kMost;
    }
    case VideoCodec::kVP8:
    case VideoCodec::kMPEG4:
      return kUsual;
    case VideoCodec::kMJPEG:
    case VideoCodec::kGIF:
    case VideoCodec::kWebP:
      return 2 * kUsual;
    case VideoCodec::kVP9:  // profile 0 is 8-bit 4:2:0; vpcC may be missing
    case VideoCodec::kAV1:
      return said.empty() ? kUsual : kMost;
  }
  return kMost;
}

}  // namespace

size_t most_frame_bytes(const VideoTrack& track) {
  // Decoders allocate whole blocks, and rows padded for vectors.
  const size_t width = (static_cast<size_t>(std::max(track.width, 1)) + 127) / 64 * 64;
  const size_t height = (static_cast<size_t>(std::max(track.height, 1)) + 15) / 16 * 16;
  return width * height * bytes_of_two_pixels(track) / 2 + 4096;
}

}  // namespace headrace
