// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/recent_tracks.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

std::shared_ptr<const VideoTrack> track_of(size_t packets) {
  VideoTrack track;
  track.packets.resize(packets);
  return std::make_shared<const VideoTrack>(track);
}

TEST(RecentTracks, GivesTheTablesOfTheSameFile) {
  RecentTracks tracks(size_t{1} << 20);
  const FileIdentity identity{1, 2, 3, 4}, replaced{1, 9, 3, 4};
  const auto track = track_of(10);
  tracks.add("a.mp4", identity, track);
  EXPECT_EQ(tracks.find("a.mp4", identity), track);
  EXPECT_EQ(tracks.find("b.mp4", identity), nullptr);
  EXPECT_EQ(tracks.find("a.mp4", replaced), nullptr);
  EXPECT_EQ(tracks.find("a.mp4", identity), nullptr);  // that of a file which is gone
}

TEST(RecentTracks, StayWithinTheBudget) {
  RecentTracks tracks(3000 * sizeof(MediaPacket));
  const auto one = track_of(1000), two = track_of(1000), three = track_of(1000);
  tracks.add("1", {}, one);
  tracks.add("2", {}, two);
  EXPECT_EQ(tracks.find("1", {}), one);  // is used later than "2"
  tracks.add("3", {}, three);
  EXPECT_EQ(tracks.find("2", {}), nullptr);
  EXPECT_EQ(tracks.find("1", {}), one);
  EXPECT_EQ(tracks.find("3", {}), three);
  tracks.add("4", {}, track_of(3001));  // alone above it
  EXPECT_EQ(tracks.find("4", {}), nullptr);
  EXPECT_EQ(tracks.find("1", {}), one);
}

}  // namespace
}  // namespace headrace
