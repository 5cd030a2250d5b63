// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/frame_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>
#include <vector>

#include "headrace/codecs/video/video_test_streams.h"

namespace headrace {
namespace frame_ranges_test {

using Ranges = std::vector<PacketRange>;

// Packets of these sizes, one after another from byte 100 on; a key frame every `gop` packets.
VideoTrack track_of(const std::vector<uint32_t>& sizes, size_t gop,
                    VideoCodec codec = VideoCodec::kAV1) {
  VideoTrack track;
  track.codec = codec;
  int64_t at = 100;
  for (size_t i = 0; i < sizes.size(); ++i) {
    track.packets.push_back(
        {.offset = at, .size = sizes[i], .key = i % gop == 0, .pts = static_cast<int64_t>(10 * i)});
    at += sizes[i];
    track.frames.push_back(static_cast<uint32_t>(i));
  }
  return track;
}

Ranges ranges(const VideoTrack& track, std::vector<uint32_t> frames) {
  return ranges_of_frames(track, frames);
}

TEST(RangesOfFrames, AreTheGroupsOfPictures) {
  const VideoTrack track = track_of({10, 20, 30, 40, 50, 60}, 2);
  EXPECT_EQ(ranges(track, {0}), (Ranges{{100, 30}}));
  EXPECT_EQ(ranges(track, {1}), (Ranges{{100, 30}}));
  EXPECT_EQ(ranges(track, {3, 2, 5}), (Ranges{{130, 70}, {200, 110}})) << "each once, ascending";
  EXPECT_EQ(ranges(track, {}), Ranges());
}

TEST(RangesOfFrames, DivideLongGroupsAtTheSamePackets) {
  const VideoTrack track = track_of(std::vector<uint32_t>(40, 100'000), 20);
  const Ranges whole = ranges(track, {19});
  ASSERT_EQ(whole.size(), 7u);
  for (uint32_t frame = 0; frame < 20; ++frame) {
    const Ranges some = ranges(track, {frame});
    ASSERT_EQ(some.size(), frame / 3 + 1) << "three packets are 256 KiB";
    EXPECT_TRUE(std::equal(some.begin(), some.end(), whole.begin()));
  }
}

TEST(RangesOfFrames, SkipLargeGaps) {
  VideoTrack track = track_of(std::vector<uint32_t>(6, 100), 6);
  for (size_t i = 2; i < 6; ++i) track.packets[i].offset += 1000;     // audio
  for (size_t i = 4; i < 6; ++i) track.packets[i].offset += 1 << 20;  // something else
  const uint64_t far = 1500 + (1 << 20);
  EXPECT_EQ(ranges(track, {5}), (Ranges{{100, 1400}, {far, 200}}));
  std::swap(track.packets[1].offset, track.packets[2].offset);  // not in decoding order
  EXPECT_EQ(ranges(track, {2}), (Ranges{{100, 1400}})) << "which would overlap";
}

TEST(RangesOfFrames, BeginBeforeAKeyFrameThatIsShownLater) {
  VideoTrack track = track_of(std::vector<uint32_t>(8, 10), 4);
  track.packets[5].pts = 35;  // decoded after the key frame at 40, and shown before it
  EXPECT_EQ(ranges(track, {5}), (Ranges{{100, 40}, {140, 40}}));
  EXPECT_EQ(ranges(track, {6}), (Ranges{{140, 40}}));
  for (MediaPacket& packet : track.packets) packet.key = false;
  EXPECT_EQ(ranges(track, {7}), (Ranges{{100, 80}})) << "from packet 0 on";
}

// The ranges are in order, do not overlap, and hold the packets from `first` to `last`.
void expect_all(const VideoTrack& track, const Ranges& ranges, size_t first, size_t last) {
  for (size_t i = 1; i < ranges.size(); ++i) {
    ASSERT_GE(ranges[i].offset, ranges[i - 1].offset + ranges[i - 1].bytes);
  }
  for (size_t i = first; i <= last; ++i) {
    const auto offset = static_cast<uint64_t>(track.packets[i].offset);
    const auto after = std::ranges::upper_bound(ranges, offset, {}, &PacketRange::offset);
    ASSERT_NE(after, ranges.begin());
    const PacketRange& range = *std::prev(after);
    ASSERT_LE(offset + track.packets[i].size, range.offset + range.bytes) << "packet " << i;
  }
}

constexpr size_t kMany = 1'000'000;

// All frames of tables that are large and odd: each would take hours if it were searched from the
// beginning for each frame.
TEST(RangesOfOddTables, TakeLinearTime) {
  std::mt19937_64 random(1);
  const auto all = [](const VideoTrack& track) { return ranges(track, track.frames); };
  const VideoTrack usual = track_of(std::vector<uint32_t>(kMany, 10), kMany);  // one key frame
  expect_all(usual, all(usual), 0, kMany - 1);
  VideoTrack track = usual;
  for (size_t i = 0; i < kMany; ++i) track.packets[i].offset = int64_t((kMany - i) * 10);
  EXPECT_EQ(all(track), (Ranges{{10, kMany * 10}})) << "backwards in the file";
  std::ranges::shuffle(track.packets, random);
  EXPECT_EQ(all(track), (Ranges{{10, kMany * 10}})) << "in no order";
  for (MediaPacket& packet : track.packets) packet.key = true;
  expect_all(track, all(track), 0, kMany - 1);
  for (MediaPacket& packet : track.packets) packet.pts = static_cast<int64_t>(random() >> 1);
  expect_all(track, all(track), 0, kMany - 1);
  for (MediaPacket& packet : track.packets) packet.offset = 7;
  EXPECT_EQ(all(track), (Ranges{{7, 10}})) << "all the same";
}

TEST(RangesOfOddTables, AreOfALimitedNumber) {
  std::mt19937 random(1);
  VideoTrack track = track_of(std::vector<uint32_t>(20'000, 10), 20'000);
  for (size_t i = 0; i < track.packets.size(); ++i) {
    track.packets[i].offset = static_cast<int64_t>(i * (1 << 20));  // megabytes apart
  }
  const Ranges few = ranges(track, {4000});
  EXPECT_EQ(few.size(), 4001u) << "without the bytes between them";
  const Ranges many = ranges(track, {19'999});
  EXPECT_LE(many.size(), kMaxRanges);
  expect_all(track, many, 0, 19'999);
  track.packets[0].key = false;
  std::ranges::shuffle(track.packets, random);
  const Ranges shuffled = ranges(track, {19'999});
  EXPECT_LE(shuffled.size(), kMaxRanges);
  expect_all(track, shuffled, 0, 19'999);
}

// The ranges contain everything that a plan feeds or inspects, now or later: decoding reads no
// other part of the file except its first packet.
TEST(RangesOfFrames, CoverEverythingThatPlansRead) {
  std::mt19937 random(1);
  for (const char* name : {"h264", "h264_open", "hevc", "av1", "mpeg4", "mjpeg"}) {
    const video_test::Stream stream = video_test::read_stream(name);
    const auto count = static_cast<uint32_t>(stream.track.frames.size());
    for (int round = 0; round < 50; ++round) {
      std::vector<uint32_t> frames(count);
      std::iota(frames.begin(), frames.end(), 0);
      std::shuffle(frames.begin(), frames.end(), random);
      frames.resize(1 + random() % 3);
      std::sort(frames.begin(), frames.end());
      std::vector<uint8_t> held(stream.file.size(), 0);  // bytes outside are zeros
      const auto keep = [&](uint64_t offset, uint64_t bytes) {
        std::copy_n(stream.file.begin() + static_cast<ptrdiff_t>(offset), bytes,
                    held.begin() + static_cast<ptrdiff_t>(offset));
      };
      keep(0, stream.track.packets[0].size);
      for (const PacketRange& range : ranges(stream.track, frames)) keep(range.offset, range.bytes);
      const FramePlan whole = plan_frames(stream.track, stream.file, frames);
      const FramePlan some = plan_frames(stream.track, held, frames);
      ASSERT_EQ(some.kept, whole.kept) << name;
      ASSERT_EQ(some.ahead, whole.ahead) << name;
      ASSERT_EQ(some.feeds.size(), whole.feeds.size()) << name;
      for (size_t i = 0; i < some.feeds.size(); ++i) {
        const MediaPacket& packet = stream.track.packets[some.feeds[i].packet];
        ASSERT_EQ(some.feeds[i].packet, whole.feeds[i].packet) << name;
        ASSERT_TRUE(std::equal(held.begin() + packet.offset,
                               held.begin() + packet.offset + packet.size,
                               stream.file.begin() + packet.offset))
            << name;
      }
    }
  }
}

}  // namespace frame_ranges_test
}  // namespace headrace
