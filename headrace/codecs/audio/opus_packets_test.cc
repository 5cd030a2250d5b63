// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/opus_packets.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "headrace/codecs/audio/ogg_pages.h"

namespace headrace {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr int64_t kPacket = 960;  // 20 ms
constexpr uint8_t kSilk = 9 << 3, kHybrid = 13 << 3, kCelt = 31 << 3;

// A stream with this many packets in each run, 312 samples of which are skipped at the start.
Bytes opus(const std::vector<std::pair<uint8_t, int>>& runs, uint8_t streams = 1) {
  Bytes head{'O', 'p', 'u', 's', 'H', 'e', 'a', 'd', 1, 2, 0x38, 1, 0, 0, 0, 0, 0, 0};
  head.push_back(streams > 1 ? 1 : 0);
  head.push_back(streams);
  OggWriter ogg;
  ogg.add(head, 0);
  ogg.add(Bytes(700, 'T'), 0);  // tags of several segments
  int64_t position = 0;
  for (const auto& [config, count] : runs) {
    for (int i = 0; i < count; ++i) ogg.add(Bytes(1 + i % 600, config), position += kPacket);
  }
  const auto bytes = ogg.bytes();
  return {bytes.begin(), bytes.end()};
}
int64_t start(const Bytes& file, int64_t begin) { return *opus_start(file, begin); }
int64_t begin_of(int64_t packet) { return packet * kPacket - 312; }

TEST(WindowStart, OfCeltIsHalfASecondBefore) {
  const Bytes file = opus({{kCelt, 500}});
  EXPECT_EQ(start(file, 0), 0);
  EXPECT_EQ(start(file, kOpusPreroll), 0);
  EXPECT_EQ(start(file, 100'000), 100'000 - kOpusPreroll);
  EXPECT_EQ(start(file, 470'000), 470'000 - kOpusPreroll);
}

TEST(WindowStart, OfSilkIsWhereSilkBegins) {
  for (const uint8_t silk : {kSilk, kHybrid}) {
    EXPECT_EQ(start(opus({{silk, 500}}), 400'000), 0);
    const Bytes file = opus({{kCelt, 100}, {silk, 100}, {kCelt, 200}, {silk, 50}});
    EXPECT_EQ(start(file, begin_of(99)), begin_of(99) - kOpusPreroll);
    EXPECT_EQ(start(file, begin_of(101)), begin_of(100) - kOpusPreroll);
    EXPECT_EQ(start(file, begin_of(199)), begin_of(100) - kOpusPreroll);
    // SILK starts before the window
    EXPECT_EQ(start(file, begin_of(210)), begin_of(100) - kOpusPreroll);
    EXPECT_EQ(start(file, begin_of(226)), begin_of(226) - kOpusPreroll);
    EXPECT_EQ(start(file, begin_of(449)), begin_of(400) - kOpusPreroll);
  }
}

TEST(WindowStart, AfterAMinuteOfSilkIsTwoSecondsBefore) {
  const Bytes file = opus({{kCelt, 50}, {kSilk, 4000}});
  EXPECT_EQ(start(file, begin_of(50) + kFarthestSilk), begin_of(50) - kOpusPreroll);
  EXPECT_EQ(start(file, begin_of(50) + kFarthestSilk + 1),
            begin_of(50) + kFarthestSilk + 1 - kSilkPreroll);
}

TEST(WindowStart, OfSeveralStreamsFollowsTheRuleOfSilk) {
  EXPECT_EQ(start(opus({{kCelt, 500}}, 2), 400'000), 0);
}

TEST(WindowStart, NeverReadsOutsideHostileBytes) {
  std::mt19937 random(1);
  const Bytes audio = opus({{kCelt, 40}, {kSilk, 40}});
  for (int i = 0; i < 2000; ++i) {
    Bytes file = audio;
    file.resize(random() % (audio.size() + 1));
    for (int k = 0; k < 4 && !file.empty(); ++k) {
      file[random() % file.size()] = static_cast<uint8_t>(random());
    }
    const int64_t begin = random() % 100'000;
    EXPECT_GE(start(file, begin), 0);
    EXPECT_LE(start(file, begin), begin);
  }
}

}  // namespace
}  // namespace headrace
