// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "headrace/sampling/batch_layout.h"
#include "headrace/sampling/sampler.h"

namespace headrace {
namespace {

using Indices = std::vector<int64_t>;

Indices epoch_of(const Sampler& sampler, uint64_t seed, uint64_t epoch) {
  Indices out;
  for (int64_t i = 0; i < sampler.size(); ++i) out.push_back(sampler.index(seed, epoch, i));
  return out;
}

// Blocks of 1 to 40 records.
Indices uneven_blocks(int64_t blocks) {
  Indices ends;
  for (int64_t i = 0; i < blocks; ++i)
    ends.push_back((ends.empty() ? 0 : ends.back()) + 1 + i * 7 % 40);
  return ends;
}

TEST(ShuffledBlocks, every_record_is_drawn_once_per_epoch) {
  for (const int64_t blocks : {1, 2, 7, 100}) {
    for (const int64_t window : {1, 3, 32, 1000}) {
      const SamplerPtr sampler = shuffled_blocks(uneven_blocks(blocks), window);
      Indices all(sampler->size());
      std::iota(all.begin(), all.end(), 0);
      for (uint64_t epoch = 0; epoch < 3; ++epoch) {
        Indices order = epoch_of(*sampler, 5, epoch);
        std::sort(order.begin(), order.end());
        ASSERT_EQ(order, all) << blocks << " blocks, window " << window;
      }
    }
  }
}

TEST(ShuffledBlocks, only_the_blocks_of_a_window_are_read_at_a_time) {
  const Indices ends = uneven_blocks(64);
  const SamplerPtr sampler = shuffled_blocks(ends, 4);
  const auto block_of = [&](int64_t record) {
    return std::upper_bound(ends.begin(), ends.end(), record) - ends.begin();
  };
  // In position order, no block is revisited after four later blocks have started.
  Indices order = epoch_of(*sampler, 1, 0);
  std::vector<std::set<int64_t>> windows(1);
  std::set<int64_t> met;
  for (const int64_t record : order) {
    const int64_t block = block_of(record);
    if (!windows.back().contains(block) && windows.back().size() == 4) windows.emplace_back();
    EXPECT_TRUE(windows.back().contains(block) || met.insert(block).second) << record;
    windows.back().insert(block);
  }
  EXPECT_EQ(windows.size(), 16u);
}

TEST(ShuffledBlocks, the_reads_of_a_window_are_announced_at_its_start) {
  const SamplerPtr sampler = shuffled_blocks(uneven_blocks(20), 8);
  const BatchLayout layout(sampler->size(), 16, 0, 1, LastBatch::kKeep);
  std::set<int64_t> told, read;
  for (int64_t begin = 0; begin < sampler->size(); begin += 16) {
    for (const RecordRange& range : sampler->begun_by(3, 1, begin / 16, begin / 16 + 1, layout)) {
      for (int64_t i = range.begin; i < range.end; ++i) EXPECT_TRUE(told.insert(i).second);
    }
    for (int64_t i = begin; i < std::min(begin + 16, sampler->size()); ++i) {
      EXPECT_TRUE(told.contains(sampler->index(3, 1, i)));
    }
  }
  EXPECT_EQ(static_cast<int64_t>(told.size()), sampler->size());
}

TEST(ShuffledBlocks, a_rank_announces_the_windows_that_it_reads_from) {
  const SamplerPtr sampler = shuffled_blocks(uneven_blocks(64), 2);  // windows of some 40 records
  for (int rank = 0; rank < 4; ++rank) {
    const BatchLayout layout(sampler->size(), 320, rank, 4, LastBatch::kKeep);
    std::set<int64_t> announced;
    for (const RecordRange& range : sampler->begun_by(3, 0, 0, layout.batches(), layout)) {
      for (int64_t i = range.begin; i < range.end; ++i) announced.insert(i);
    }
    for (int64_t batch = 0; batch < layout.batches(); ++batch) {
      const BatchRange mine = layout.range(batch);
      for (int64_t i = mine.begin; i < mine.end; ++i) {
        EXPECT_TRUE(announced.contains(sampler->index(3, 0, i)));
      }
    }
    EXPECT_LT(std::ssize(announced), sampler->size() * 3 / 4) << rank;
  }
}

TEST(ShuffledBlocks, is_a_function_of_seed_epoch_and_blocks) {
  const SamplerPtr one = shuffled_blocks(uneven_blocks(50), 8);
  const SamplerPtr again = shuffled_blocks(uneven_blocks(50), 8);
  const Indices first = epoch_of(*one, 7, 2);
  epoch_of(*one, 7, 3);
  epoch_of(*one, 8, 2);
  EXPECT_EQ(epoch_of(*one, 7, 2), first);
  EXPECT_EQ(epoch_of(*again, 7, 2), first);
  EXPECT_NE(epoch_of(*one, 8, 2), first);
  EXPECT_NE(epoch_of(*one, 7, 3), first);
  EXPECT_NE(one->fingerprint(), shuffled_blocks(uneven_blocks(50), 9)->fingerprint());
  EXPECT_NE(one->fingerprint(), shuffled_blocks(uneven_blocks(51), 8)->fingerprint());
}

TEST(ShuffledBlocks, empty_blocks_do_not_matter) {
  const SamplerPtr sampler = shuffled_blocks({0, 5, 5, 9, 9}, 2);
  EXPECT_EQ(sampler->size(), 9);
  EXPECT_EQ(sampler->fingerprint(), shuffled_blocks({5, 9}, 2)->fingerprint());
}

}  // namespace
}  // namespace headrace
