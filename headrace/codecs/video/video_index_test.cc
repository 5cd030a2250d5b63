// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/video_index.h"

#include <gtest/gtest.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "headrace/codecs/video/frame_order.h"

namespace headrace {
namespace {

constexpr uint64_t kFileBytes = uint64_t{1} << 40;

VideoTrack drawn_track(unsigned seed) {
  std::mt19937_64 random(seed);
  VideoTrack track;
  constexpr VideoCodec kCodecs[] = {VideoCodec::kH264, VideoCodec::kHEVC, VideoCodec::kAV1,
                                    VideoCodec::kMPEG4};
  track.codec = kCodecs[random() % 4];
  track.width = static_cast<int>(random() % 4000);
  track.height = 1080;
  track.quarter_turns = static_cast<int>(random() % 4);
  track.color = {ColorMatrix::kBT709, ColorRange::kFull, ColorTransfer::kHLG};
  track.ticks_per_second = 90000;
  track.ticks_divisor = 1 + static_cast<int64_t>(random() % 1000);
  track.duration = static_cast<int64_t>(random() % 1000000);
  track.parameters.resize(random() % 50, static_cast<uint8_t>(seed));
  const size_t count = random() % 200;
  const int wide = static_cast<int>(seed % 30);
  uint64_t at = random() % 1000;
  for (size_t i = 0; i < count; ++i) {
    const auto size = static_cast<uint32_t>(1 + random() % (uint64_t{2} << wide));
    track.packets.push_back({.offset = static_cast<int64_t>(at),
                             .size = size,
                             .key = random() % 10 == 0,
                             .pts = static_cast<int64_t>(i * 512 + random() % 4 * 512) - 700});
    at = seed % 5 == 0 ? random() % (kFileBytes >> 1) : at + size + random() % (1 + seed % 3 * 500);
  }
  EXPECT_TRUE(order_frames({}, -600, INT64_MAX, track));
  return track;
}

void expect_same(const VideoTrack& a, const VideoTrack& b) {
  EXPECT_EQ(a.codec, b.codec);
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.height, b.height);
  EXPECT_EQ(a.quarter_turns, b.quarter_turns);
  EXPECT_EQ(a.color, b.color);
  EXPECT_EQ(a.ticks_per_second, b.ticks_per_second);
  EXPECT_EQ(a.ticks_divisor, b.ticks_divisor);
  EXPECT_EQ(a.duration, b.duration);
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.frames, b.frames);
  ASSERT_EQ(a.packets.size(), b.packets.size());
  for (size_t i = 0; i < a.packets.size(); ++i) {
    EXPECT_EQ(a.packets[i].offset, b.packets[i].offset);
    EXPECT_EQ(a.packets[i].size, b.packets[i].size);
    EXPECT_EQ(a.packets[i].key, b.packets[i].key);
    EXPECT_EQ(a.packets[i].pts, b.packets[i].pts);
  }
}

TEST(VideoIndex, RestoresTheTrack) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const VideoTrack track = drawn_track(seed);
    const Result<VideoTrack> back = track_from_video_index(video_index_of(track), kFileBytes);
    ASSERT_TRUE(back) << back.error().message();
    expect_same(track, *back);
  }
}

TEST(VideoIndex, TakesAFewBytesPerPacket) {
  VideoTrack track;
  int64_t at = 48;
  for (int i = 0; i < 36000; ++i) {
    const uint32_t size = 500 + static_cast<uint32_t>(i * 7919 % 60000);
    track.packets.push_back({.offset = at, .size = size, .key = i % 250 == 0, .pts = i * 512});
    at += size;
  }
  EXPECT_TRUE(order_frames({}, INT64_MIN, INT64_MAX, track));
  EXPECT_LT(video_index_of(track).size(), 36000u * 8);
}

TEST(VideoIndex, IsRejectedForASmallerFile) {
  const VideoTrack track = drawn_track(7);
  uint64_t end = 0;
  for (const MediaPacket& packet : track.packets) {
    end = std::max(end, static_cast<uint64_t>(packet.offset) + packet.size);
  }
  const std::vector<uint8_t> index = video_index_of(track);
  EXPECT_TRUE(track_from_video_index(index, end));
  const Result<VideoTrack> smaller = track_from_video_index(index, end - 1);
  ASSERT_FALSE(smaller);
  EXPECT_EQ(smaller.error().code->id, "HR0366");
}

TEST(VideoIndex, TruncatedOrChangedIsRefusedByItsHash) {
  const std::vector<uint8_t> whole = video_index_of(drawn_track(3));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(track_from_video_index(std::span(whole).first(size), kFileBytes));
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    std::vector<uint8_t> changed = whole;
    changed[i] ^= 1;
    EXPECT_FALSE(track_from_video_index(changed, kFileBytes));
  }
}

// Even with a forged hash, no packet lies outside of the file.
TEST(VideoIndex, NeverPlacesPacketsOutsideTheFile) {
  std::mt19937 random(1);
  size_t good = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> index = video_index_of(drawn_track(static_cast<unsigned>(i % 40)));
    for (int k = 0; k <= i % 3; ++k) {
      index[8 + random() % (index.size() - 16)] = static_cast<uint8_t>(random());
    }
    const uint64_t hash = XXH3_64bits(index.data(), index.size() - 8);
    std::memcpy(index.data() + index.size() - 8, &hash, 8);
    const Result<VideoTrack> track = track_from_video_index(index, kFileBytes);
    if (!track) continue;
    ++good;
    for (const MediaPacket& packet : track->packets) {
      ASSERT_GE(packet.offset, 0);
      ASSERT_LE(static_cast<uint64_t>(packet.offset) + packet.size, kFileBytes);
      ASSERT_GT(packet.size, 0u);
    }
    int64_t pts = INT64_MIN;
    for (const uint32_t frame : track->frames) {
      ASSERT_LT(frame, track->packets.size());
      ASSERT_GE(track->packets[frame].pts, pts);
      pts = track->packets[frame].pts;
    }
  }
  EXPECT_GT(good, 100u);
}

}  // namespace
}  // namespace headrace
