// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "headrace/base/error.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sampling/batches_by_length.h"

namespace headrace {
namespace {

std::vector<int64_t> lengths_of(int64_t records, double sigma = 0.6) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(0, sigma);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < records; ++i) out.push_back(int64_t(16000 * std::exp(normal(random))));
  return out;
}

// The records of each batch, over all ranks.
std::vector<std::vector<int64_t>> batches_of(const Sampler& sampler, uint64_t epoch, int world) {
  const BatchLayout first(sampler.batch_sizes(), 0, world, 1);
  std::vector<std::vector<int64_t>> out(static_cast<size_t>(first.batches()));
  for (int rank = 0; rank < world; ++rank) {
    const BatchLayout layout(sampler.batch_sizes(), rank, world, 1);
    EXPECT_EQ(layout.batches(), first.batches());
    for (int64_t k = 0; k < layout.batches(); ++k) {
      const BatchRange range = layout.range(k);
      EXPECT_GT(range.size(), 0);
      EXPECT_LE(range.size(), layout.rank_batch());
      for (int64_t p = range.begin; p < range.end; ++p) {
        out[size_t(k)].push_back(sampler.index(3, epoch, p));
      }
    }
  }
  return out;
}

TEST(Budget, HasEachRecordOnceInBatchesWithinTheBudget) {
  constexpr int64_t kBudget = 400'000;
  for (const int64_t records : {1, 7, 100, 5000}) {
    const std::vector<int64_t> lengths = lengths_of(records);
    const SamplerPtr sampler = within_budget(lengths, kBudget, 30);
    for (const uint64_t epoch : {0u, 1u}) {
      std::set<int64_t> met;
      for (const auto& batch : batches_of(*sampler, epoch, 1)) {
        int64_t longest = 0;
        for (const int64_t record : batch) {
          longest = std::max(longest, lengths[size_t(record)]);
          EXPECT_TRUE(met.insert(record).second);
        }
        EXPECT_LE(longest * std::ssize(batch), kBudget);
      }
      EXPECT_EQ(std::ssize(met), records);
    }
  }
}

TEST(Budget, TheRanksSlicesFormTheBatchForAnyWorldSize) {
  const SamplerPtr sampler = within_budget(lengths_of(3000), 800'000, 30);
  const auto alone = batches_of(*sampler, 2, 1);
  EXPECT_EQ(batches_of(*sampler, 2, 2), alone);
  EXPECT_EQ(batches_of(*sampler, 2, 3), alone);
  EXPECT_NE(batches_of(*sampler, 3, 1), alone);
}

TEST(Budget, PadsAtMostAQuarterAsMuchAsRandomBatches) {
  const std::vector<int64_t> lengths = lengths_of(20000);
  const auto padding = [&](const std::vector<std::vector<int64_t>>& batches) {
    int64_t all = 0, real = 0;
    for (const auto& batch : batches) {
      int64_t longest = 0;
      for (const int64_t record : batch) {
        longest = std::max(longest, lengths[size_t(record)]);
        real += lengths[size_t(record)];
      }
      all += longest * std::ssize(batch);
    }
    return 1 - double(real) / double(all);
  };
  const SamplerPtr sampler = within_budget(lengths, 64 * 20000, 30);
  const auto batches = batches_of(*sampler, 0, 1);
  std::vector<std::vector<int64_t>> random(1);
  const SamplerPtr shuffle = shuffled(20000);
  for (int64_t i = 0; i < 20000; ++i) {
    if (std::ssize(random.back()) == 64) random.emplace_back();
    random.back().push_back(shuffle->index(3, 0, i));
  }
  EXPECT_LT(padding(batches), padding(random) / 4);
}

// The set has fewer batches than a bucket usually has.
TEST(Budget, OneLongRecordOfASmallSetDoesNotSplitTheOthers) {
  std::vector<int64_t> lengths(299, 50);
  lengths.push_back(1000);
  EXPECT_EQ(std::ssize(within_budget(lengths, 1200, 30)->batch_sizes()), 14);
  EXPECT_EQ(std::ssize(within_budget(lengths, 1200, 1)->batch_sizes()), 300);  // as requested
  std::vector<int64_t> sounds = lengths_of(600);
  const int64_t all = std::accumulate(sounds.begin(), sounds.end(), int64_t{0});
  sounds.push_back(all / 8);
  const SamplerPtr sampler = within_budget(sounds, all / 8, 30);
  EXPECT_LE(std::ssize(sampler->batch_sizes()), 16);  // 9 without padding
}

TEST(Budget, RecordsAreGroupedDifferentlyInEachEpoch) {
  const SamplerPtr sampler = within_budget(lengths_of(5000), 400'000, 30);
  std::map<int64_t, std::set<int64_t>> met;  // batch mates of record 17
  std::set<int64_t> others;
  for (uint64_t epoch = 0; epoch < 10; ++epoch) {
    for (const auto& batch : batches_of(*sampler, epoch, 1)) {
      if (std::ranges::count(batch, 17)) others.insert(batch.begin(), batch.end());
    }
  }
  EXPECT_GT(others.size(), 80u);
}

TEST(Budget, RejectsARecordThatExceedsItAndABatchTooSmallForTheRanks) {
  EXPECT_THROW(within_budget({5, 11, 3}, 10, 30), Exception);
  const SamplerPtr sampler = within_budget({5, 9, 3}, 10, 30);
  EXPECT_THROW(BatchLayout(sampler->batch_sizes(), 0, 2, 1), Exception);
  EXPECT_THROW(within_budget({}, 10, 30), Exception);
}

TEST(Budget, RejectsANegativeLengthInAnyMeasure) {
  const auto text = [](const std::vector<int64_t>& lengths, int64_t parts) -> std::string {
    try {
      within_budgets({{.measure = {.lengths = {1, 1, 1}}, .total = 10},
                      {.measure = {.lengths = lengths, .parts = parts}, .total = 10}},
                     30);
    } catch (const Exception& refused) {
      return refused.what();
    }
    return "";
  };
  EXPECT_EQ(text({5, 0, 3}, 1), "");
  EXPECT_NE(text({5, 3, -7}, 1).find("record 2 has a length of -7"), std::string::npos);
  EXPECT_NE(text({5, -1500, 3}, 1000).find("record 1 has a length of -1.5"), std::string::npos);
}

TEST(Budget, ReportsTheUnitOfTheLengths) {
  const auto text = [](int64_t budget) {
    return within_budget({5, 3}, budget, 30, 1000)->description();
  };
  EXPECT_NE(text(4000).find("of 4 together"), std::string::npos) << text(4000);
  EXPECT_NE(text(4050).find("of 4.05 together"), std::string::npos) << text(4050);
  EXPECT_NE(text(7).find("of 0.007 together"), std::string::npos) << text(7);
  try {
    within_budget({5, 1230}, 500, 30, 1000);
    ADD_FAILURE();
  } catch (const Exception& refused) {
    EXPECT_NE(
        std::string(refused.what()).find("record 1 has a length of 1.23, but the budget is 0.5"),
        std::string::npos)
        << refused.what();
  }
}

TEST(Budget, CountsTheRowsOfBatchesOfAnySizes) {
  const std::vector<int64_t> sizes = {3, 8, 2, 5};
  for (int world : {1, 2}) {
    for (int rank = 0; rank < world; ++rank) {
      const BatchLayout layout(sizes, rank, world, 1);
      int64_t row = 0;
      for (int64_t k = 0; k < layout.batches(); ++k) {
        EXPECT_EQ(layout.rows_before(k), row);
        const BatchRange range = layout.range(k);
        for (int64_t p = range.begin; p < range.end; ++p) {
          EXPECT_EQ(layout.position_of_row(row++), p);
        }
      }
      EXPECT_EQ(layout.rows_before(layout.batches()), row);
      EXPECT_EQ(layout.records_before(2), 11);
    }
  }
}

}  // namespace
}  // namespace headrace
