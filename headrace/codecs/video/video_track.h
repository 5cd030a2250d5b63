// SPDX-License-Identifier: Apache-2.0
// A container's description of its video: how pictures are coded, and where in the file each packet
// of them lies. Made by one reader per container, from hostile bytes; nothing is decoded for it,
// and no picture is believed to be there before a decoder has made it.
//
// A packet's number is its place in decoding order, a frame's number its place in the order in
// which frames are shown. All frames of a sequential decode are there, and no others.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/codecs/media/media_packet.h"

namespace headrace {

enum class VideoCodec : uint8_t { kH264, kHEVC, kVP8, kVP9, kAV1, kMPEG4, kMJPEG, kGIF, kWebP };

// The matrix between RGB and YCbCr. Files that do not say it are BT.601, as everybody takes them;
// kOther is one that is said and not known here, of which no colors can be made.
enum class ColorMatrix : uint8_t {
  kUnsaid,
  kBT601,
  kBT709,
  kBT2020,
  kSMPTE240M,
  kFCC,
  kIdentity,
  kOther
};
enum class ColorRange : uint8_t { kUnsaid, kLimited, kFull };
// The light that values mean. PQ and HLG are of high dynamic range.
enum class ColorTransfer : uint8_t { kUnsaid, kStandard, kPQ, kHLG };

struct VideoColor {
  ColorMatrix matrix = ColorMatrix::kUnsaid;
  ColorRange range = ColorRange::kUnsaid;
  ColorTransfer transfer = ColorTransfer::kUnsaid;
  bool operator==(const VideoColor&) const = default;
};

struct VideoTrack {
  VideoCodec codec = VideoCodec::kH264;
  int width = 0, height = 0;  // as stored, before it is turned
  int quarter_turns = 0;      // with the clock, to be upright: 0 to 3
  VideoColor color;           // as the container says it; a frame may say more
  int64_t ticks_per_second = 1, ticks_divisor = 1;  // a tick is ticks_divisor / ticks_per_second
  // Configuration of the decoder: the content of avcC, hvcC, av1C or esds' specific info, which
  // libavcodec calls extradata.
  std::vector<uint8_t> parameters;
  std::vector<MediaPacket> packets;
  std::vector<uint32_t> frames;  // of each frame the number of the packet that brings it
  int64_t duration = 0;          // ticks, to the end of the last frame

  double seconds(int64_t ticks) const {
    return static_cast<double>(ticks) * static_cast<double>(ticks_divisor) /
           static_cast<double>(ticks_per_second);
  }
};

}  // namespace headrace
