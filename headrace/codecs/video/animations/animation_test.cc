// SPDX-License-Identifier: Apache-2.0
// Animations decoded from any position, with rules whose result is obvious; and hostile bytes.
#include "headrace/codecs/video/animations/animation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "headrace/codecs/video/video_file.h"

namespace headrace {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr int kSize = 4;  // size of all screens below

void add(Bytes& out, std::initializer_list<int> bytes) {
  for (const int byte : bytes) out.push_back(uint8_t(byte));
}

// A screen whose palette has the colors (10, 20, 30), (40, 50, 60), ... and background 3.
Bytes gif_head() {
  Bytes out = {'G', 'I', 'F', '8', '9', 'a'};
  add(out, {kSize, 0, kSize, 0, 0x80 | 1, 3, 0});
  for (int i = 1; i <= 12; ++i) out.push_back(uint8_t(10 * i));
  return out;
}

struct TestFrame {
  int x, y, width, height;
  std::vector<int> indices;
  int disposal = 1;
  int transparent = -1;
  int hundredths = 4;
  bool interlaced = false;
};

// Codes of three bits, one pixel each: after two of them the table is reset.
Bytes codes_of(const std::vector<int>& indices) {
  Bytes bytes;
  uint32_t held = 0;
  int bits = 0;
  const auto put = [&](int code) {
    held |= uint32_t(code) << bits;
    for (bits += 3; bits >= 8; bits -= 8, held >>= 8) bytes.push_back(uint8_t(held));
  };
  for (size_t i = 0; i < indices.size(); ++i) {
    if (i % 2 == 0) put(4);
    put(indices[i]);
  }
  put(5);
  if (bits > 0) bytes.push_back(uint8_t(held));
  return bytes;
}

void add_frame(Bytes& out, const TestFrame& frame) {
  add(out, {'!', 0xf9, 4, frame.disposal << 2 | (frame.transparent >= 0), frame.hundredths, 0,
            std::max(frame.transparent, 0), 0});
  add(out, {',', frame.x, 0, frame.y, 0, frame.width, 0, frame.height, 0,
            frame.interlaced ? 0x40 : 0, 2});
  const Bytes codes = codes_of(frame.indices);
  out.push_back(uint8_t(codes.size()));
  out.insert(out.end(), codes.begin(), codes.end());
  out.push_back(0);
}

Bytes gif_of(const std::vector<TestFrame>& frames) {
  Bytes out = gif_head();
  for (const TestFrame& frame : frames) add_frame(out, frame);
  out.push_back(';');
  return out;
}

TestFrame all_of(int index, int disposal = 1) {
  return {0, 0, kSize, kSize, std::vector<int>(kSize * kSize, index), disposal};
}

// The frames' red planes, as indices.
class Reds final : public FrameSink {
 public:
  Result<void> frame(size_t number, const YuvFrame& frame) override {
    EXPECT_EQ(number, planes.size());
    EXPECT_EQ(frame.color.matrix, ColorMatrix::kIdentity);
    std::vector<int> plane;
    for (int i = 0; i < frame.width * frame.height; ++i) {
      const int red = frame.plane[2][i / frame.width * frame.stride[2] + i % frame.width];
      EXPECT_EQ(frame.plane[0][i], red + 10);  // green
      EXPECT_EQ(frame.plane[1][i], red + 20);  // blue
      plane.push_back((red - 10) / 30);
    }
    planes.push_back(plane);
    return {};
  }
  std::vector<std::vector<int>> planes;
};

Buffer buffer_of(std::span<const uint8_t> bytes) {
  Buffer out(bytes.size());
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

// Starts at the last key frame.
FramePlan plan_of(const VideoTrack& track, uint32_t first, uint32_t end) {
  FramePlan plan;
  uint32_t key = first;
  while (!track.packets[key].key) --key;
  for (uint32_t i = key; i < end; ++i) plan.feeds.push_back({i, i == key});
  for (uint32_t i = first; i < end; ++i) plan.kept.push_back(i);
  return plan;
}

Result<void> decode(const VideoTrack& track, const Buffer& file, uint32_t first, uint32_t end,
                    FrameSink& sink, const VideoDecoderOptions& options = {}) {
  return make_animation_decoder(options)->decode(track, file.bytes(), plan_of(track, first, end),
                                                 sink);
}

std::vector<std::vector<int>> frames_of(const Bytes& bytes) {
  const Buffer file = buffer_of(bytes);
  const Result<VideoTrack> track = read_video(file.bytes());
  EXPECT_TRUE(track);
  Reds reds;
  EXPECT_TRUE(decode(*track, file, 0, uint32_t(track->frames.size()), reds));
  return reds.planes;
}

std::vector<int> with_square(int around, int inside) {
  std::vector<int> out(kSize * kSize, around);
  for (const int at : {5, 6, 9, 10}) out[size_t(at)] = inside;
  return out;
}
TestFrame square(int index, int disposal, int transparent = -1) {
  return {1, 1, 2, 2, {index, index, index, index}, disposal, transparent};
}

TEST(Gif, DisposesOfFramesAsTheySpecify) {
  const auto shown = [](int disposal, int transparent = -1) {
    return frames_of(gif_of({all_of(0), square(1, disposal, transparent), {0, 0, 1, 1, {0}}}))[2];
  };
  EXPECT_EQ(shown(1), with_square(0, 1));
  EXPECT_EQ(shown(0), with_square(0, 1));     // same as the previous frame, which stays
  EXPECT_EQ(shown(2), with_square(0, 3));     // the background
  EXPECT_EQ(shown(2, 2), with_square(0, 2));  // transparent in that frame
  EXPECT_EQ(shown(3), with_square(0, 0));     // the previous contents
}

TEST(Gif, ShowsPreviousFramesThroughTransparentPixels) {
  TestFrame holes = square(1, 1, 2);
  holes.indices = {1, 2, 2, 1};
  const auto frames = frames_of(gif_of({all_of(0), holes}));
  std::vector<int> want(kSize * kSize, 0);
  want[5] = want[10] = 1;
  EXPECT_EQ(frames[1], want);
}

TEST(Gif, FillsAreasThatItsFirstFrameDoesNotCover) {
  EXPECT_EQ(frames_of(gif_of({square(1, 1)}))[0], with_square(0, 1));
  EXPECT_EQ(frames_of(gif_of({square(1, 1, 2)}))[0], with_square(2, 1));
}

TEST(Gif, HasItsInterlacedRowsInOrder) {
  TestFrame frame = all_of(0);
  frame.interlaced = true;
  frame.indices = {0, 0, 0, 0, 2, 2, 2, 2, 1, 1, 1, 1, 3, 3, 3, 3};  // rows 0, 2, 1, 3
  EXPECT_EQ(frames_of(gif_of({frame}))[0],
            (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}));
}

TEST(Gif, ShowsFramesAsLongAsBrowsersDo) {
  TestFrame quick = all_of(0), slow = all_of(1);
  quick.hundredths = 1;
  slow.hundredths = 7;
  const Result<VideoTrack> track = read_video(buffer_of(gif_of({quick, slow, slow})).bytes());
  ASSERT_TRUE(track);
  EXPECT_EQ(track->packets[1].pts, 100);
  EXPECT_EQ(track->packets[2].pts, 170);
  EXPECT_EQ(track->duration, 240);
  EXPECT_EQ(track->seconds(track->duration), 0.24);
}

TEST(Gif, GivesEachFrameAloneAsInSequence) {
  const Bytes bytes = gif_of({all_of(0), square(1, 3), all_of(2), square(3, 2), square(1, 1, 1)});
  const auto all = frames_of(bytes);
  const Buffer file = buffer_of(bytes);
  const Result<VideoTrack> track = read_video(file.bytes());
  ASSERT_TRUE(track);
  EXPECT_TRUE(track->packets[0].key && track->packets[2].key);
  EXPECT_FALSE(track->packets[1].key || track->packets[3].key || track->packets[4].key);
  for (uint32_t i = 0; i < all.size(); ++i) {
    Reds reds;
    ASSERT_TRUE(decode(*track, file, i, i + 1, reds));
    EXPECT_EQ(reds.planes[0], all[i]) << i;
  }
}

TEST(Gif, HasALargerCanvasIfAFrameReachesBeyondIt) {
  TestFrame frame = square(1, 1);
  frame.x = 3;
  const Result<VideoTrack> track = read_video(buffer_of(gif_of({all_of(0), frame})).bytes());
  ASSERT_TRUE(track);
  EXPECT_EQ(track->width, 5);
  EXPECT_EQ(track->height, 4);
}

TEST(Gif, IsAnImageUnlessRequestedAsAVideo) {
  const Bytes bytes = gif_of({all_of(0)});
  EXPECT_FALSE(begins_like_video(bytes));
  EXPECT_NE(video_container_of(bytes), nullptr);
}

TEST(Gif, WithTooManyPixelsIsRejectedBeforeAllocation) {
  Bytes bytes = gif_of({all_of(0)});
  bytes[6] = bytes[7] = bytes[8] = bytes[9] = 0xff;
  const Buffer file = buffer_of(bytes);
  const Result<VideoTrack> track = read_video(file.bytes());
  ASSERT_TRUE(track);
  Reds reds;
  const Result<void> done = decode(*track, file, 0, 1, reds, {{}, 1 << 20});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code->id, "HR0348");
}

TEST(Gif, ExceedingTheTimeLimitIsAnError) {
  const Buffer file = buffer_of(gif_of({all_of(0), all_of(1)}));
  const Result<VideoTrack> track = read_video(file.bytes());
  Reds reds;
  const Result<void> done = decode(*track, file, 0, 2, reds, {{.seconds = 0}});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code->id, "HR0379");
}

TEST(Gif, IsNotDecodedIfNothingIsRequested) {
  const Buffer file = buffer_of(gif_of({all_of(0), all_of(1)}));
  const Result<VideoTrack> track = read_video(file.bytes());
  const std::atomic<bool> stop = true;
  Reds reds;
  const Result<void> done = decode(*track, file, 0, 2, reds, {{.stop = &stop}});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code->id, "HR0369");
}

TEST(Gif, TruncatedAnywhereIsAnErrorOrItsFirstFrames) {
  const Bytes bytes = gif_of({all_of(0), square(1, 3), square(2, 2)});
  const auto all = frames_of(bytes);
  const Result<VideoTrack> whole = read_video(buffer_of(bytes).bytes());
  ASSERT_TRUE(whole);
  for (size_t length = 0; length < bytes.size(); ++length) {
    const Buffer file = buffer_of({bytes.data(), length});
    const Result<VideoTrack> track = read_video(file.bytes());
    if (!track) continue;
    Reds reds;
    const auto frames = uint32_t(track->frames.size());
    const Result<void> done = decode(*track, file, 0, frames, reds);
    if (!done) continue;
    EXPECT_EQ(reds.planes.size(), frames);
    // After the last pixel of a frame only its end code and terminator byte are missing.
    const bool ends_a_frame = std::ranges::any_of(whole->packets, [&](const MediaPacket& packet) {
      const size_t end = size_t(packet.offset) + packet.size;
      return length <= end && length + 2 >= end;
    });
    EXPECT_TRUE(ends_a_frame || frames == all.size()) << length;
    for (size_t i = 0; i < reds.planes.size(); ++i) EXPECT_EQ(reds.planes[i], all[i]) << length;
  }
}

TEST(Animations, TerminateOnAnyChangedByte) {
  std::mt19937 engine(5);
  const Bytes whole = gif_of({all_of(0), square(1, 3), square(2, 2), all_of(2, 2)});
  class Any final : public FrameSink {
   public:
    Result<void> frame(size_t, const YuvFrame& frame) override {
      sum = sum + frame.plane[0][frame.width * frame.height - 1];
      return {};
    }
    volatile unsigned sum = 0;
  } sink;
  for (int i = 0; i < 10000; ++i) {
    Bytes bytes = whole;
    for (unsigned k = 0; k <= engine() % 4; ++k) {
      bytes[engine() % bytes.size()] = uint8_t(engine());
    }
    const Buffer file = buffer_of(bytes);
    const Result<VideoTrack> track = read_video(file.bytes());
    if (!track) continue;
    for (const MediaPacket& packet : track->packets) {
      ASSERT_LE(size_t(packet.offset) + packet.size, bytes.size());
    }
    (void)decode(*track, file, 0, uint32_t(track->frames.size()), sink, {{}, 1 << 16});
  }
}

TEST(Webp, IsNotAVideoUnlessAnimated) {
  const Bytes still = {'R', 'I', 'F', 'F', 30, 0, 0, 0, 'W', 'E', 'B', 'P', 'V', 'P', '8', 'X',
                       10,  0,   0,   0,   0,  0, 0, 0, 1,   0,   0,   1,   0,   0,   0,   0};
  EXPECT_EQ(video_container_of(still), nullptr);
  Bytes moving = still;
  moving[20] = 2;
  ASSERT_NE(video_container_of(moving), nullptr);
  const Result<VideoTrack> track = read_video(moving);
  ASSERT_FALSE(track);  // without a frame
  EXPECT_EQ(track.error().code->id, "HR0345");
}

TEST(Animations, AreTheOnlyVideosThatThisDecoderAccepts) {
  EXPECT_NE(animation_of(VideoCodec::kGIF), nullptr);
  EXPECT_NE(animation_of(VideoCodec::kWebP), nullptr);
  EXPECT_EQ(animation_of(VideoCodec::kH264), nullptr);
}

}  // namespace
}  // namespace headrace
