// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/memory/memory_shares.h"

#include <gtest/gtest.h>

#include <set>

#include "headrace/base/error.h"

namespace headrace {
namespace {

TEST(MemoryShares, FitInsideTheLimit) {
  for (size_t limit : {96u << 20, 300u << 20, 1u << 30}) {
    for (size_t batch : {1u << 10, 1u << 20, 10u << 20}) {
      const MemoryShares shares = divide_memory(limit, batch, 4, true);
      EXPECT_LE(shares.slots + shares.read_ahead + shares.threads + shares.records, limit);
      EXPECT_EQ(shares.slots, shares.depth * batch);
      EXPECT_GE(shares.depth, 2);
    }
  }
}

TEST(MemoryShares, LeaveRoomForTheSameRecordForAnyNumberOfThreads) {
  for (size_t limit : {24u << 20, 64u << 20, 300u << 20, 1u << 30}) {
    for (size_t batch : {1u << 10, 3u << 20, 77u << 20}) {
      for (bool lists : {false, true}) {
        std::set<size_t> records, files;
        for (int threads = 1; threads <= 64; ++threads) {
          try {
            const MemoryShares shares = divide_memory(limit, batch, threads, true, lists);
            EXPECT_GE(shares.records, shares.largest_record);
            EXPECT_LE(
                shares.slots + shares.threads + shares.lists + shares.read_ahead + shares.records,
                limit);
            records.insert(shares.largest_record);
            files.insert(shares.largest_file);
          } catch (const Exception& e) {
            EXPECT_EQ(e.error().code->id, "HR0702");
          }
        }
        EXPECT_LE(records.size(), 1u);
        EXPECT_LE(files.size(), 1u);
      }
    }
  }
}

TEST(MemoryShares, LeaveRoomForTheSameRecordOnAnyDevice) {
  const auto on_device = [](size_t limit, size_t batch, bool lists, size_t host) {
    const MemoryShares shares = divide_memory(limit, batch, 2, true, lists, host);
    EXPECT_GE(shares.records, shares.largest_record);
    EXPECT_GE(shares.read_ahead, 1u << 20);
    EXPECT_LE(shares.slots + shares.threads + shares.lists + shares.read_ahead + shares.records,
              limit);
    return shares.largest_record;
  };
  for (size_t host : {1u << 10, 3u << 20, 7u << 20}) {
    for (size_t batch : {1u << 10, 2u << 20, 5u << 20, 9u << 20, 77u << 20}) {
      for (bool lists : {false, true}) {
        int given = 0;
        for (size_t limit = 40 << 20; limit < 300 << 20; limit += 999'999) {
          const MemoryShares there = divide_memory(limit, host, 2, true, lists);
          try {
            EXPECT_EQ(on_device(limit, batch, lists, host), there.largest_record);
            ++given;
          } catch (const Exception& e) {
            EXPECT_EQ(e.error().code->id, "HR0702");
            EXPECT_GT(batch, host);
            EXPECT_EQ(given, 0) << "a lower limit has room";
          }
        }
        EXPECT_GT(given, 0);
      }
    }
  }
}

TEST(MemoryShares, CountAClipsFramesOnlyWhereNeeded) {
  const Spec resize{"Resize", {{"size", std::vector<int64_t>{8, 8}}}, {}, {}};
  const Spec clip{"CenterVideoClip", {{"num_frames", int64_t{4}}}, {}, {}};
  const Schema videos = {{"it", FieldKind::kVideo, DType::kUInt8, {-1, 3, -1, -1}, true}};
  const auto clips = make_plan(videos, Pipeline{{clip, resize}, {}, {}}, {});
  for (const size_t limit : {64u << 20, 300u << 20, 1u << 30}) {
    for (const int threads : {1, 4}) {
      const MemoryShares shares = divide_memory(limit, 1 << 20, threads, true);
      const MemoryShares kept = with_kept_frames(shares, *clips, threads);
      EXPECT_EQ(kept.threads + kept.records, shares.threads + shares.records);
      EXPECT_EQ(kept.largest_record, shares.largest_record);
      EXPECT_GE(kept.records, kept.largest_record);
      EXPECT_EQ((kept.renderer_bytes - shares.renderer_bytes) * size_t(threads),
                kept.threads - shares.threads);
      EXPECT_EQ(kept.threads > shares.threads, shares.records > shares.largest_record);
    }
  }
  const MemoryShares shares = divide_memory(size_t{1} << 30, 1 << 20, 2, true);
  const Schema pictures = {{"it", FieldKind::kImage, DType::kUInt8, {3, -1, -1}, true}};
  const auto none = make_plan(pictures, Pipeline{{resize}, {}, {}}, {});
  EXPECT_EQ(with_kept_frames(shares, *none, 2).threads, shares.threads);
}

TEST(MemoryShares, ShrinkTheRingBeforeRefusing) {
  const size_t batch = 100 << 20;
  EXPECT_EQ(divide_memory(size_t{1} << 30, batch, 2, true).depth, 3);
  EXPECT_EQ(divide_memory(size_t{250} << 20, batch, 2, true).depth, 2);
  try {
    (void)divide_memory(size_t{150} << 20, batch, 2, true);
    FAIL();
  } catch (const Exception& e) {
    EXPECT_NE(e.error().message().find("memory_limit is 150 MiB"), std::string::npos);
  }
}

}  // namespace
}  // namespace headrace
