// SPDX-License-Identifier: Apache-2.0
// A container's description of its video: how pictures are coded, and where each packet is in the
// file. Made by one reader per container, from hostile bytes, without decoding; whether the
// pictures are valid is only known after decoding.
//
// A packet's number is its index in decoding order, a frame's number its index in presentation
// order. The frames are exactly those of a sequential decode.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/codecs/media/media_packet.h"

namespace headrace {

enum class VideoCodec : uint8_t { kH264, kHEVC, kVP8, kVP9, kAV1, kMPEG4, kMJPEG, kGIF, kWebP };

// The matrix between RGB and YCbCr. Files that do not specify it are treated as BT.601, as is
// usual; kOther: an unknown matrix, with which colors cannot be computed.
enum class ColorMatrix : uint8_t {
  kUnspecified,
  kBT601,
  kBT709,
  kBT2020,
  kSMPTE240M,
  kFCC,
  kIdentity,
  kOther
};
enum class ColorRange : uint8_t { kUnspecified, kLimited, kFull };
// The transfer function. PQ and HLG are high dynamic range.
enum class ColorTransfer : uint8_t { kUnspecified, kStandard, kPQ, kHLG };

struct VideoColor {
  ColorMatrix matrix = ColorMatrix::kUnspecified;
  ColorRange range = ColorRange::kUnspecified;
  ColorTransfer transfer = ColorTransfer::kUnspecified;
  bool operator==(const VideoColor&) const = default;
};

struct VideoTrack {
  VideoCodec codec = VideoCodec::kH264;
  int width = 0, height = 0;  // as stored, before rotation
  int quarter_turns = 0;      // clockwise quarter turns to make it upright: 0 to 3
  VideoColor color;           // from the container; a frame may override it
  int64_t ticks_per_second = 1, ticks_divisor = 1;  // a tick is ticks_divisor / ticks_per_second
  // The decoder's configuration: the content of avcC, hvcC, av1C or esds' specific info; called
  // extradata in libavcodec.
  std::vector<uint8_t> parameters;
  std::vector<MediaPacket> packets;
  std::vector<uint32_t> frames;  // for each frame, the number of its packet
  int64_t duration = 0;          // ticks, to the end of the last frame
  // The first bytes of packet 0, if they are kept with the table (ranged_videos.h). shared: by
  // copies.
  std::shared_ptr<const Buffer> first_packet = {};

  double seconds(int64_t ticks) const {
    return static_cast<double>(ticks) * static_cast<double>(ticks_divisor) /
           static_cast<double>(ticks_per_second);
  }
};

// From the code points of ITU-T H.273, which containers and codecs use.
inline ColorMatrix color_matrix_from(uint64_t code) {
  switch (code) {
    case 0:
      return ColorMatrix::kIdentity;
    case 1:
      return ColorMatrix::kBT709;
    case 2:
      return ColorMatrix::kUnspecified;
    case 4:
      return ColorMatrix::kFCC;
    case 5:
    case 6:
      return ColorMatrix::kBT601;
    case 7:
      return ColorMatrix::kSMPTE240M;
    case 9:
      return ColorMatrix::kBT2020;
    default:
      return ColorMatrix::kOther;
  }
}

inline ColorTransfer color_transfer_from(uint64_t code) {
  if (code == 16) return ColorTransfer::kPQ;
  if (code == 18) return ColorTransfer::kHLG;
  return code == 2 ? ColorTransfer::kUnspecified : ColorTransfer::kStandard;
}

}  // namespace headrace
