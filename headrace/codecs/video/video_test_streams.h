// SPDX-License-Identifier: Apache-2.0
// The streams of tests/videos, without a container: encoded by FFmpeg, with the CRC-32 of each
// frame that FFmpeg decodes from them (tools/make_test_videos.py).
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/codecs/video/frame_plan.h"
#include "headrace/codecs/video/video_decoder.h"
#include "headrace/codecs/video/video_track.h"

namespace headrace::video_test {

struct Stream {
  VideoTrack track;
  std::vector<uint8_t> file;
  std::vector<uint32_t> hashes;  // of frame i
};

inline VideoCodec codec_named(const std::string& name) {
  if (name == "hevc") return VideoCodec::kHEVC;
  if (name == "vp8") return VideoCodec::kVP8;
  if (name == "vp9") return VideoCodec::kVP9;
  if (name == "av1") return VideoCodec::kAV1;
  if (name == "mpeg4") return VideoCodec::kMPEG4;
  if (name == "mjpeg") return VideoCodec::kMJPEG;
  return VideoCodec::kH264;
}

inline std::filesystem::path stream_folder() {
  const auto here = std::filesystem::path(__FILE__).parent_path() / "../../../tests/videos";
  return std::filesystem::exists(here) ? here : "tests/videos";
}

inline Stream read_stream(const std::string& name) {
  Stream out;
  std::ifstream bytes(stream_folder() / (name + ".bin"), std::ios::binary);
  out.file.assign(std::istreambuf_iterator<char>(bytes), {});
  std::ifstream table(stream_folder() / (name + ".txt"));
  EXPECT_TRUE(bytes && table) << stream_folder() << " has no " << name;
  int64_t offset = 0;
  for (std::string line, word; std::getline(table, line);) {
    std::istringstream words(line);
    words >> word;
    if (word == "stream") {
      words >> word >> out.track.width >> out.track.height;
      out.track.codec = codec_named(word);
    } else if (word == "parameters" && words >> word) {
      for (size_t i = 0; i + 1 < word.size(); i += 2) {
        out.track.parameters.push_back(
            static_cast<uint8_t>(std::stoi(word.substr(i, 2), nullptr, 16)));
      }
    } else if (word == "packet") {
      MediaPacket packet{.offset = offset};
      words >> packet.size >> packet.pts >> packet.key;
      offset += packet.size;
      out.track.packets.push_back(packet);
    } else if (word == "frame") {
      uint32_t number = 0, hash = 0;
      words >> number >> std::hex >> hash;
      out.track.frames.push_back(number);
      out.hashes.push_back(hash);
    }
  }
  return out;
}

// All packets, all frames.
inline FramePlan whole(const VideoTrack& track) {
  FramePlan plan{{}, track.frames};
  for (uint32_t i = 0; i < track.packets.size(); ++i) plan.feeds.push_back({i, i == 0});
  return plan;
}

// Decodes one frame alone, from the previous key frame, with all packets until the decoder must
// have output it.
inline FramePlan alone(const VideoTrack& track, uint32_t frame) {
  const uint32_t wanted = track.frames[frame];
  uint32_t key = 0;
  for (uint32_t i = 0; i <= wanted; ++i) {
    const MediaPacket& packet = track.packets[i];
    if (packet.key && packet.pts <= track.packets[wanted].pts) key = i;
  }
  FramePlan plan{{}, {wanted}};
  for (uint32_t i = key; i <= wanted; ++i) plan.feeds.push_back({i, i == key});
  return plan;
}

// Same hash as `ffmpeg -f framehash -hash crc32`.
inline uint32_t hash_of(const YuvFrame& frame) {
  uLong hash = crc32(0, nullptr, 0);
  for (int plane = 0; plane < frame.planes; ++plane) {
    const int shift_x = plane ? frame.chroma_x : 0, shift_y = plane ? frame.chroma_y : 0;
    const int columns = (frame.width + (1 << shift_x) - 1) >> shift_x;
    const int rows = (frame.height + (1 << shift_y) - 1) >> shift_y;
    for (int row = 0; row < rows; ++row) {
      hash = crc32(hash, frame.plane[plane] + row * frame.stride[plane],
                   static_cast<uInt>(columns * (frame.bits > 8 ? 2 : 1)));
    }
  }
  return static_cast<uint32_t>(hash);
}

class Hashes final : public FrameSink {
 public:
  Result<void> frame(size_t number, const YuvFrame& frame) override {
    order.push_back(number);
    hashes.push_back(hash_of(frame));
    last = frame;
    return {};
  }
  std::vector<size_t> order;
  std::vector<uint32_t> hashes;
  YuvFrame last;  // without its planes' bytes
};

}  // namespace headrace::video_test
