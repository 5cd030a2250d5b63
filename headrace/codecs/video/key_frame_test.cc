// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "headrace/codecs/video/frame_order.h"
#include "headrace/codecs/video/video_test_streams.h"

namespace headrace {
namespace {

// In streams made by FFmpeg, the key frames are the same as FFmpeg reports.
TEST(KeyFrame, IsRecognizedByItsFirstBytes) {
  for (const char* const name : {"mpeg4", "vp8", "vp9", "vp9_440"}) {
    const video_test::Stream stream = video_test::read_stream(name);
    ASSERT_FALSE(stream.track.packets.empty()) << name;
    for (const MediaPacket& packet : stream.track.packets) {
      const std::span<const uint8_t> bytes(stream.file.data() + packet.offset, packet.size);
      EXPECT_EQ(may_be_key(stream.track.codec, bytes), packet.key) << name << packet.pts;
    }
  }
}

TEST(KeyFrame, OfMpeg4BeginsAfterItsHeaders) {
  const auto key = [](std::vector<uint8_t> bytes) { return may_be_key(VideoCodec::kMPEG4, bytes); };
  EXPECT_TRUE(key({0, 0, 1, 0xB3, 0, 16, 7, 0, 0, 1, 0xB6, 0x10}));
  EXPECT_FALSE(key({0, 0, 1, 0xB3, 0, 16, 7, 0, 0, 1, 0xB6, 0x50}));
  EXPECT_TRUE(key({1, 1, 0, 1, 0, 0, 0, 0, 1, 0xB6, 0}));
  for (const std::vector<uint8_t>& cut : std::vector<std::vector<uint8_t>>{
           {}, {0}, {0, 0, 1}, {0, 0, 1, 0xB6}, {1, 0xB6, 0}, {0, 1, 0xB6, 0}, {0, 0, 0, 0, 1}}) {
    EXPECT_FALSE(key(cut)) << cut.size();
  }
}

}  // namespace
}  // namespace headrace
