// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/media_decoder.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "headrace/codecs/media/media_process.h"
#include "headrace/codecs/video/video_test_streams.h"

namespace headrace {
namespace {

using video_test::alone;
using video_test::Hashes;
using video_test::read_stream;
using video_test::Stream;
using video_test::whole;

class MediaDecoder : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(media_program())) {
      GTEST_SKIP() << "no headrace-av: libavcodec-dev was missing";
    }
    decoder_ = made({});
  }
  static std::unique_ptr<VideoDecoder> made(const VideoDecoderOptions& options) {
    Result<std::unique_ptr<VideoDecoder>> decoder = make_video_decoder(options);
    EXPECT_TRUE(decoder) << decoder.error().message();
    return decoder ? std::move(*decoder) : nullptr;
  }
  std::unique_ptr<VideoDecoder> decoder_;
};

class AllMediaDecoders : public MediaDecoder, public testing::WithParamInterface<const char*> {};

TEST_P(AllMediaDecoders, GivesTheFramesOfFfmpeg) {
  const Stream stream = read_stream(GetParam());
  Hashes sink;
  const Result<void> good = decoder_->decode(stream.track, stream.file, whole(stream.track), sink);
  ASSERT_TRUE(good) << good.error().message();
  EXPECT_EQ(sink.hashes, stream.hashes);
  std::vector<size_t> order(stream.hashes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  EXPECT_EQ(sink.order, order);
}

TEST_P(AllMediaDecoders, GivesEachFrameAlone) {
  const Stream stream = read_stream(GetParam());
  std::vector<uint32_t> frames(stream.hashes.size());
  std::iota(frames.begin(), frames.end(), 0U);
  std::shuffle(frames.begin(), frames.end(), std::mt19937(1));
  for (const uint32_t frame : frames) {
    Hashes sink;
    const Result<void> good =
        decoder_->decode(stream.track, stream.file, alone(stream.track, frame), sink);
    if (!good) {
      ADD_FAILURE() << frame << ": " << good.error().message();
      continue;
    }
    EXPECT_EQ(sink.hashes, std::vector<uint32_t>{stream.hashes[frame]}) << frame;
  }
}

// Like a container without a list of key frames.
TEST_P(AllMediaDecoders, DoesNotBeginAtFalseKeys) {
  Stream stream = read_stream(GetParam());
  for (MediaPacket& packet : stream.track.packets) packet.key = true;
  for (uint32_t frame = 0; frame < stream.hashes.size(); ++frame) {
    Hashes sink;
    const FramePlan plan = plan_frames(stream.track, stream.file, {&frame, 1});
    const Result<void> good = decoder_->decode(stream.track, stream.file, plan, sink);
    if (stream.track.codec == VideoCodec::kAV1 && !good) continue;  // its bytes are never read
    ASSERT_TRUE(good) << frame << ": " << good.error().message();
    EXPECT_EQ(sink.hashes, std::vector<uint32_t>{stream.hashes[frame]}) << frame;
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, AllMediaDecoders,
                         testing::Values("h264", "h264_open", "h264_odd", "h264_444", "h264_422_10",
                                         "h264_rgb", "h264_gray", "hevc", "hevc_12", "vp8", "vp9",
                                         "av1", "mpeg4", "mjpeg"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace headrace
