// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/hdf5/hdf5_chunk_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace headrace {
namespace {

const ErrorCode kBad{"HR0000", ErrorKind::kData, "bad chunk", ""};

class Hdf5ChunkCacheTest : public testing::Test {
 protected:
  // A chunk of ten bytes, all equal to its number. Counts unpacking.
  uint8_t get(uint64_t dataset, uint64_t cell) {
    uint8_t seen = 0;
    EXPECT_TRUE(cache_.get(
        dataset, cell, 10,
        [&](std::span<uint8_t> out) -> Result<void> {
          unpacked_.push_back(cell);
          std::fill(out.begin(), out.end(), static_cast<uint8_t>(cell));
          return {};
        },
        [&](std::span<const uint8_t> bytes) {
          EXPECT_EQ(bytes.size(), 10u);
          seen = bytes[9];
        }));
    return seen;
  }
  Hdf5ChunkCache cache_{30};
  std::vector<uint64_t> unpacked_;
};

TEST_F(Hdf5ChunkCacheTest, a_chunk_is_decompressed_once) {
  for (int again = 0; again < 3; ++again) EXPECT_EQ(get(1, 7), 7);
  EXPECT_EQ(get(2, 7), 7);  // of another dataset
  EXPECT_EQ(unpacked_, (std::vector<uint64_t>{7, 7}));
}

TEST_F(Hdf5ChunkCacheTest, the_least_recently_used_chunk_is_evicted_first) {
  for (const uint64_t cell : {1, 2, 3, 1, 4}) get(1, cell);  // 4 evicted 2
  unpacked_.clear();
  for (const uint64_t cell : {1, 3, 4}) EXPECT_EQ(get(1, cell), cell);
  EXPECT_TRUE(unpacked_.empty());
  EXPECT_EQ(get(1, 2), 2);
  EXPECT_EQ(unpacked_, (std::vector<uint64_t>{2}));
}

TEST_F(Hdf5ChunkCacheTest, a_chunk_larger_than_the_limit_is_kept_alone) {
  get(1, 1);
  int made = 0;
  for (int again = 0; again < 2; ++again) {
    EXPECT_TRUE(cache_.get(
        1, 2, 100, [&](std::span<uint8_t>) { return ++made, Result<void>(); },
        [](std::span<const uint8_t> bytes) { EXPECT_EQ(bytes.size(), 100u); }));
  }
  EXPECT_EQ(made, 1);
  unpacked_.clear();
  get(1, 1);
  EXPECT_EQ(unpacked_.size(), 1u);
}

TEST_F(Hdf5ChunkCacheTest, failures_are_retried_and_never_returned) {
  for (int again = 0; again < 2; ++again) {
    const Result<void> got = cache_.get(
        1, 5, 10,
        [&](std::span<uint8_t>) -> Result<void> {
          return Error{.code = &kBad, .what = "try " + std::to_string(again)};
        },
        [](std::span<const uint8_t>) { ADD_FAILURE() << "used"; });
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().what, "try " + std::to_string(again));
  }
  EXPECT_EQ(get(1, 5), 5);
}

}  // namespace
}  // namespace headrace
