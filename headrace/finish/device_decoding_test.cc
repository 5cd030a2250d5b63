// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/device_decoding.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

namespace headrace {
namespace {

using Place = DeviceDecoding::Place;

TEST(DeviceDecoding, EveryPlaceHasAUniqueText) {
  std::set<std::string_view> texts;
  for (size_t i = 0; i < DeviceDecoding::kPlaces; ++i) {
    texts.insert(DeviceDecoding::text_of(Place(i)));
  }
  EXPECT_EQ(texts.size(), DeviceDecoding::kPlaces);
  EXPECT_FALSE(texts.contains(""));
}

TEST(DeviceDecoding, ThreadsCountTogether) {
  DeviceDecoding log;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&log] {
      constexpr int kPlaces = int(DeviceDecoding::kPlaces);
      for (int i = 0; i < 1000 * kPlaces; ++i) log.count(Place(i % kPlaces));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int64_t count : log.counts()) EXPECT_EQ(count, 4000);
}

// Readers see a distrusted record at the latest when the thread that marked it has finished.
TEST(DeviceDecoding, ADistrustedRecordRemainsDistrusted) {
  DeviceDecoding log;
  EXPECT_TRUE(log.trusts(0));
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&log, t] {
      for (int64_t i = 0; i < 500; ++i) {
        const std::vector<int64_t> records{8 * i + t, -1 - i};
        log.distrust(records);
        EXPECT_FALSE(log.trusts(8 * i + t));
        EXPECT_TRUE(log.trusts(8 * i + 4 + t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int64_t record = 0; record < 4000; ++record) EXPECT_EQ(log.trusts(record), record % 8 >= 4);
  log.distrust({});
  EXPECT_TRUE(log.trusts(4));
}

}  // namespace
}  // namespace headrace
