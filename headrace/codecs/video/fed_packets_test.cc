// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/fed_packets.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headrace {
namespace {

// Packet i is ten bytes of i; frames are shown in decoding order.
struct Video {
  VideoTrack track;
  std::vector<uint8_t> file;
  explicit Video(uint32_t packets) {
    track.width = track.height = 16;
    track.parameters = {1, 2, 3};
    for (uint32_t i = 0; i < packets; ++i) {
      track.packets.push_back({.offset = static_cast<int64_t>(file.size()), .size = 10, .pts = i});
      track.frames.push_back(i);
      file.insert(file.end(), 10, static_cast<uint8_t>(i));
    }
  }
};

// "4R 5 6" and which frames are wanted.
FramePlan plan_of(const std::string& feeds, std::vector<uint32_t> kept) {
  FramePlan plan{.kept = std::move(kept)};
  for (size_t at = 0; at < feeds.size();) {
    size_t digits = 0;
    const auto packet = static_cast<uint32_t>(std::stoul(feeds.substr(at), &digits));
    at += digits;
    const bool restart = at < feeds.size() && feeds[at] == 'R';
    plan.feeds.push_back({.packet = packet, .restart = restart});
    at += restart + 1U;
  }
  return plan;
}

FedPackets fed(const Video& video, const FramePlan& plan) {
  FedPackets out;
  out.begin(video.track);
  for (const Feed& feed : plan.feeds) {
    out.add(feed.packet, feed.restart, std::span(video.file).subspan(feed.packet * 10, 10));
  }
  return out;
}

size_t known(const std::string& before, const std::string& feeds, std::vector<uint32_t> kept) {
  const Video video(20);
  return fed(video, plan_of(before, {})).known_of(video.track, video.file, plan_of(feeds, kept));
}

TEST(FedPackets, ContinuesToLaterFrames) {
  EXPECT_EQ(known("0R 1 2 3", "0R 1 2 3 4 5", {5}), 4u);
  EXPECT_EQ(known("0R 1 2 3", "0R 2 4 5", {4, 5}), 2u);  // 1 and 3 were wanted before, but nothing
                                                         // depends on them
  EXPECT_EQ(known("4R 5 6", "4R 5 6 7 12R 13", {7, 13}), 3u);
  // continues across a key frame, having begun before it
  EXPECT_EQ(known("0R 1 2 3 4 5 6", "4R 5 6 7", {7}), 3u);
}

TEST(FedPackets, RestartsForEarlierFrames) {
  EXPECT_EQ(known("0R 1 2 3", "0R 1 2 3", {3}), 0u);
  EXPECT_EQ(known("0R 1 2 3", "0R 1 2 3 4", {2, 4}), 0u);
  EXPECT_EQ(known("4R 5 6", "0R 1", {1}), 0u);
  EXPECT_EQ(known("", "0R 1", {1}), 0u);
}

TEST(FedPackets, RestartsIfReferencesAreMissing) {
  EXPECT_EQ(known("0R 1 3", "0R 1 2 3 4", {4}), 0u);
  // pictures before an open group's key frame
  EXPECT_EQ(known("4R 5 6", "0R 1 2 3 4 5 6 7", {7}), 0u);
  EXPECT_EQ(known("0R 1 4R 5", "0R 1 4 5 6", {6}), 0u);  // the restart discarded those before 4
  EXPECT_EQ(known("0R 1 2", "8R 9", {9}), 0u);           // a key frame further ahead
  EXPECT_EQ(known("0R 1 2", "0R 3R 4", {4}), 0u);
}

TEST(FedPackets, ContinuesOnlyInTheSameVideo) {
  const Video video(20);
  const FramePlan next = plan_of("0R 1 2 3", {3});
  const FedPackets before = fed(video, plan_of("0R 1 2", {2}));
  EXPECT_TRUE(before.is_of(video.track));
  ASSERT_EQ(before.known_of(video.track, video.file, next), 3u);
  {
    Video moved = video;  // the same packets, elsewhere in a file
    moved.file.insert(moved.file.begin(), 7, 0);
    for (MediaPacket& packet : moved.track.packets) packet.offset += 7;
    EXPECT_EQ(before.known_of(moved.track, moved.file, next), 3u);
  }
  for (const size_t byte : {0u, 15u, 29u}) {
    Video other = video;
    other.file[byte] ^= 1;
    EXPECT_EQ(before.known_of(other.track, other.file, next), 0u) << byte;
  }
  {
    Video other = video;
    other.track.parameters.back() = 9;
    EXPECT_FALSE(before.is_of(other.track));
    EXPECT_EQ(before.known_of(other.track, other.file, next), 0u);
  }
  {
    Video other = video;
    other.track.width = 32;
    EXPECT_EQ(before.known_of(other.track, other.file, next), 0u);
  }
  EXPECT_EQ(before.known_of(Video(19).track, video.file, next), 0u);
}

TEST(FedPackets, CannotContinueAfterTheEnd) {
  const Video video(20);
  FedPackets before = fed(video, plan_of("0R 1 2", {2}));
  before.end();
  EXPECT_TRUE(before.is_of(video.track));
  EXPECT_EQ(before.known_of(video.track, video.file, plan_of("0R 1 2 3", {3})), 0u);
  EXPECT_FALSE(FedPackets().is_of(video.track));
}

TEST(FedPackets, RestartsForFramesBeforeAKeyFrameThatWasPassed) {
  const Video video(20);
  FedPackets before = fed(video, plan_of("0R 1 2 3 4 5", {5}));
  before.forget_before(4);
  EXPECT_EQ(before.size(), 2u);
  EXPECT_EQ(before.known_of(video.track, video.file, plan_of("4R 5 6", {6})), 2u);
  EXPECT_EQ(before.known_of(video.track, video.file, plan_of("0R 1 2 3 4 5 6", {6})), 0u);
}

}  // namespace
}  // namespace headrace
