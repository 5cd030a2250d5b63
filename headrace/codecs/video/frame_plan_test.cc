// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/frame_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "headrace/codecs/video/avi_test_chunks.h"
#include "headrace/codecs/video/frame_order.h"
#include "headrace/codecs/video/nal_test_units.h"

namespace headrace {
namespace frame_plan_test {

using namespace nal_test;

struct Video {
  VideoTrack track;
  Bytes file;

  void add(const Bytes& packet, int64_t pts, bool key) {
    track.packets.push_back({.offset = static_cast<int64_t>(file.size()),
                             .size = static_cast<uint32_t>(packet.size()),
                             .key = key,
                             .pts = pts});
    file = file + packet;
  }
  std::vector<uint32_t> wanted_at(const std::vector<int64_t>& times) const {
    std::vector<uint32_t> frames;
    for (uint32_t i = 0; i < track.frames.size(); ++i) {
      const int64_t pts = track.packets[track.frames[i]].pts;
      if (std::ranges::count(times, pts)) frames.push_back(i);
    }
    return frames;
  }
  // "0R 1 4": packets that are fed, R where the decoder restarts.
  std::string fed(const std::vector<int64_t>& times) const {
    std::string out;
    for (const Feed& feed : plan_frames(track, file, wanted_at(times)).feeds) {
      out += (out.empty() ? "" : " ") + std::to_string(feed.packet) + (feed.restart ? "R" : "");
    }
    return out;
  }
};

// One letter per packet, in decoding order: K an IDR picture, R a recovery point, k one that only
// the container marks as a key frame, P one that others need, b one that nothing needs. Times as
// given, or in decoding order.
Video h264(const std::string& letters, std::vector<int64_t> times = {}) {
  Video video;
  video.track.parameters = avcc_of();
  if (times.empty()) {
    times.resize(letters.size());
    std::iota(times.begin(), times.end(), 0);
  }
  for (size_t i = 0; i < letters.size(); ++i) {
    const char c = letters[i];
    const Bytes packet = c == 'K'   ? packet_of({kIdr})
                         : c == 'R' ? packet_of({sei(6, {0xC4}), kReference})
                         : c == 'b' ? packet_of({kOther})
                                    : packet_of({kReference});
    video.add(packet, times[i], c == 'K' || c == 'R' || c == 'k');
  }
  EXPECT_TRUE(order_frames(video.file, INT64_MIN, INT64_MAX, video.track));
  return video;
}

TEST(FramePlan, FeedsFromTheKeyToTheLastRequestedFrame) {
  const Video video = h264("KPPPPPPP");
  EXPECT_EQ(video.fed({3}), "0R 1 2 3");
  EXPECT_EQ(video.fed({0}), "0R");
  EXPECT_EQ(video.fed({1, 4, 5}), "0R 1 2 3 4 5");
  EXPECT_EQ(video.fed({}), "");
  const std::vector<uint32_t> frames{1, 4};
  EXPECT_EQ(plan_frames(video.track, video.file, frames).kept, frames);
}

TEST(FramePlan, SkipsUnreferencedPackets) {
  const Video video = h264("KbPbPbPb");
  EXPECT_EQ(video.fed({6}), "0R 2 4 6");
  EXPECT_EQ(video.fed({3, 6}), "0R 2 3 4 6");
  EXPECT_EQ(video.fed({7}), "0R 2 4 6 7");
}

// MPEG-4 pictures shown between two others are not needed by any.
TEST(FramePlan, SkipsUnneededFramesInMpeg4) {
  Video video;
  video.track.codec = VideoCodec::kMPEG4;
  const auto picture = [](uint8_t kind) { return Bytes{0, 0, 1, 0xB6, uint8_t(kind << 6), 0}; };
  const std::vector<int64_t> times{0, 2, 1, 4, 3};
  for (size_t i = 0; i < times.size(); ++i) {
    video.add(picture(i == 0 ? 0 : i % 2 ? 1 : 2), times[i], i == 0);
  }
  ASSERT_TRUE(order_frames(video.file, INT64_MIN, INT64_MAX, video.track));
  EXPECT_EQ(video.fed({4}), "0R 1 3");
  EXPECT_EQ(video.fed({1, 4}), "0R 1 2 3");
}

// In interlaced MPEG-4, the decoder learns the field duration from the first B picture after a
// layer's description, for all later pictures. I, P and B; L is an I picture with a description.
Video fields(const std::string& letters, const std::vector<int64_t>& times, bool described = true) {
  using avi_test::kFields;
  Video video;
  video.track.codec = VideoCodec::kMPEG4;
  if (described) video.track.parameters = kFields;
  for (size_t i = 0; i < letters.size(); ++i) {
    const char c = letters[i];
    const Bytes picture = avi_test::picture(c == 'L' ? 'I' : c);
    video.add(c == 'L' ? kFields + picture : picture, times[i], c == 'L' || c == 'I');
  }
  EXPECT_TRUE(order_frames(video.file, INT64_MIN, INT64_MAX, video.track));
  return video;
}

TEST(FramePlan, FeedsTheFrameThatDeterminesFields) {
  // Shown I B B P B B P, twice.
  const std::vector<int64_t> closed{0, 3, 1, 2, 6, 4, 5, 7, 10, 8, 9, 13, 11, 12};
  const Video each = fields("LPBBPBBLPBBPBB", closed);
  EXPECT_EQ(each.fed({5}), "0R 1 2 4 6");
  EXPECT_EQ(each.fed({12}), "7R 8 9 11 13");
  EXPECT_EQ(each.fed({1, 12}), "0R 1 2 7R 8 9 11 13");
  const Video once = fields("IPBBPBBIPBBPBB", closed);
  EXPECT_EQ(once.fed({5}), "0R 1 2 4 6");
  EXPECT_EQ(once.fed({12}), "0R 1 2 7R 8 11 13");
  EXPECT_EQ(once.fed({1, 12}), "0R 1 2 7R 8 11 13");
  EXPECT_EQ(once.fed({0, 12}), "0R 0R 1 2 7R 8 11 13");
}

TEST(FramePlan, StartsBeforeAFieldDurationFrameShownBeforeItsKey) {
  // Shown I P B B I B B P: those before the second I depend on both.
  const std::vector<int64_t> open{0, 1, 4, 2, 3, 7, 5, 6};
  EXPECT_EQ(fields("LPLBBPBB", open).fed({6}), "0R 1 2 3 5 7");
  EXPECT_EQ(fields("LPIBBPBB", open).fed({6}), "0R 1 2 3 5 7");
  const std::vector<int64_t> longer{0, 3, 1, 2, 6, 4, 5, 9, 7, 8};
  EXPECT_EQ(fields("LPBBIBBPBB", longer).fed({8}), "0R 1 2 4R 7 9");
  EXPECT_EQ(fields("LPBBLBBPBB", longer).fed({8}), "0R 1 2 4 5 7 9");
}

TEST(FramePlan, RestartsIfThatSkipsAPacket) {
  const Video video = h264("KPPPKPPPKPPP");
  EXPECT_EQ(video.fed({5}), "4R 5");
  EXPECT_EQ(video.fed({1, 9}), "0R 1 8R 9");
  EXPECT_EQ(video.fed({3, 5}), "0R 1 2 3 4 5");  // continues
  EXPECT_EQ(video.fed({2, 4}), "0R 1 2 4R");
  EXPECT_EQ(video.fed({0, 4, 8}), "0R 4R 8R");
  EXPECT_EQ(video.fed({7, 8}), "4R 5 6 7 8");
}

// Decoded I P b b I b b P, shown I b b P b b I P: those before the second I depend on the first.
TEST(FramePlan, AssignsFramesBeforeAKeyToThePreviousKey) {
  const Video video = h264("KPbbRbbP", {0, 3, 1, 2, 6, 4, 5, 7});
  EXPECT_EQ(video.fed({6}), "4R");
  EXPECT_EQ(video.fed({7}), "4R 7");
  EXPECT_EQ(video.fed({5}), "0R 1 4 6");
  EXPECT_EQ(video.fed({1, 6}), "0R 1 2 4R");
  EXPECT_EQ(video.fed({5, 7}), "0R 1 4 6 7");
}

TEST(FramePlan, IgnoresFalseKeyFlags) {
  EXPECT_EQ(h264("KPPkPP").fed({4}), "0R 1 2 3 4");
  EXPECT_EQ(h264("KPPkPPKPP").fed({1, 4, 8}), "0R 1 2 3 4 6R 7 8");
  EXPECT_EQ(h264("PPPPP").fed({3}), "0R 1 2 3");  // no key frame: like a full decode
  Video unframed = h264("KPPKP");
  unframed.track.parameters.clear();
  EXPECT_EQ(unframed.fed({4}), "0R 1 2 3 4");
}

TEST(FramePlan, TrustsTheContainerForOtherCodecs) {
  Video video = h264("PPkPb");
  video.track.codec = VideoCodec::kAV1;
  EXPECT_EQ(video.fed({4}), "2R 3 4");
  video.track.codec = VideoCodec::kMJPEG;
  for (MediaPacket& packet : video.track.packets) packet.key = true;
  EXPECT_EQ(video.fed({0, 1, 4}), "0R 1 4R");
}

TEST(FramePlan, FeedsTheFirstPacketOfAnOldX264ToADecoderThatStartsElsewhere) {
  const auto with = [](std::string_view says) {
    Video video;
    video.track.parameters = avcc_of();
    video.add(packet_of({x264_sei(says), kIdr}), 0, true);
    video.add(packet_of({kReference}), 1, false);
    video.add(packet_of({kIdr}), 2, true);
    EXPECT_TRUE(order_frames(video.file, INT64_MIN, INT64_MAX, video.track));
    return video;
  };
  EXPECT_EQ(with("x264 - core 120 r2164").fed({2}), "0R 2R");
  EXPECT_EQ(with("x264 - core 120 r2164").fed({0, 2}), "0R 2R");
  EXPECT_EQ(with("x264 - core 164 r3095").fed({2}), "2R");
  EXPECT_EQ(with("others").fed({2}), "2R");
}

// Some files name the encoder in the first packet only.
TEST(FramePlan, LearnsTheEncoderOfMpeg4FromTheFirstPacket) {
  const Bytes layer{0, 0, 1, 0x20, 0x00, 0x84, 0x40, 0x06, 0x60};
  const Bytes name{0, 0, 1, 0xB2, 'X', 'v', 'i', 'D', '0', '0', '5', '0'};
  const Bytes key{0, 0, 1, 0xB6, 0, 0};
  const auto joined = [](Bytes one, const Bytes& other) {
    one.insert(one.end(), other.begin(), other.end());
    return one;
  };
  const auto with = [&](const Bytes& parameters, const Bytes& first) {
    Video video;
    video.track.codec = VideoCodec::kMPEG4;
    video.track.parameters = parameters;
    video.add(joined(first, key), 0, true);
    video.add(key, 1, true);
    EXPECT_TRUE(order_frames(video.file, INT64_MIN, INT64_MAX, video.track));
    return video;
  };
  EXPECT_EQ(with(layer, name).fed({1}), "0R 1R");
  EXPECT_EQ(with(layer, name).fed({0, 1}), "0R 1");
  EXPECT_EQ(with({}, layer).fed({1}), "0R 1R");
  EXPECT_EQ(with(layer, layer).fed({1}), "1R");
  EXPECT_EQ(with(joined(layer, name), joined(layer, name)).fed({1}), "1R");
}

TEST(FramePlan, WorksForTimesInAnyOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    const size_t count = 1 + random() % 24;
    std::string letters;
    std::vector<int64_t> times;
    for (size_t i = 0; i < count; ++i) {
      letters += i == 0 ? 'K' : "KRkPPPbbb"[random() % 9];
      // Mostly realistic; sometimes anything.
      times.push_back(round % 4 == 0 ? random() % 12 : i * 2 + random() % 5);
    }
    const Video video = h264(letters, times);
    std::vector<uint32_t> frames;
    for (uint32_t f = 0; f < count; ++f) {
      if (random() % 4 == 0) frames.push_back(f);
    }
    const FramePlan plan = plan_frames(video.track, video.file, frames);
    ASSERT_EQ(plan.kept.size(), frames.size());
    std::vector<int> pass_of(count, -1), begins;
    for (const Feed& feed : plan.feeds) {
      EXPECT_EQ(pass_of[feed.packet], -1);  // each once
      if (feed.restart) begins.push_back(static_cast<int>(feed.packet));
      pass_of[feed.packet] = static_cast<int>(begins.size()) - 1;
      ASSERT_FALSE(begins.empty());
    }
    for (size_t i = 0; i < frames.size(); ++i) {
      const uint32_t packet = video.track.frames[frames[i]];
      EXPECT_EQ(plan.kept[i], packet);
      ASSERT_GE(pass_of[packet], 0) << letters;
      // From a valid start up to the packet, everything that another packet could need is fed.
      bool served = false, all = true;
      for (uint32_t k = packet;; --k) {
        all = all && (pass_of[k] == pass_of[packet] || (letters[k] == 'b' && pass_of[k] < 0));
        const bool start =
            k == 0 || ((letters[k] == 'K' || letters[k] == 'R') && times[k] <= times[packet]);
        if (start && all) served = true;
        if (served || k == 0) break;
      }
      EXPECT_TRUE(served) << letters << " frame " << frames[i];
    }
  }
}

}  // namespace frame_plan_test
}  // namespace headrace
