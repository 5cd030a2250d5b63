// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "headrace/base/error.h"
#include "headrace/base/permutation.h"
#include "headrace/sampling/batch_layout.h"

namespace headrace {
namespace {

TEST(Permutation, VisitsEveryIndexOnceForEverySize) {
  for (int64_t size = 1; size < 300; ++size) {
    Permutation order(size, 7 * size);
    std::set<int64_t> seen;
    for (int64_t i = 0; i < size; ++i) seen.insert(order(i));
    ASSERT_EQ(static_cast<int64_t>(seen.size()), size);
    ASSERT_EQ(*seen.begin(), 0);
    ASSERT_EQ(*seen.rbegin(), size - 1);
  }
}

// Over many keys, each record should appear at each position equally often (Pearson's chi square).
TEST(Permutation, IsUniformOverKeys) {
  for (int64_t size : {2, 3, 5, 7, 10, 17, 33, 64, 65, 100}) {
    const int keys = 20000;
    std::vector<int> counts(size * size);
    for (int key = 0; key < keys; ++key) {
      Permutation order(size, key * 0x9E3779B97F4A7C15);
      for (int64_t i = 0; i < size; ++i) ++counts[i * size + order(i)];
    }
    const double expected = double(keys) / size;
    double chi2 = 0;
    for (int count : counts) chi2 += (count - expected) * (count - expected) / expected;
    const double freedom = double(size - 1) * (size - 1);
    EXPECT_LT(chi2, freedom + 5 * std::sqrt(2 * freedom)) << "size " << size;
  }
}

// Neighbors in the order should not be neighbors in the source.
TEST(Permutation, HasNoSerialCorrelation) {
  const int64_t size = 100'000;
  Permutation order(size, 42);
  double sum = 0;
  const double mean = (size - 1) / 2.0, variance = (double(size) * size - 1) / 12;
  for (int64_t i = 0; i + 1 < size; ++i) sum += (order(i) - mean) * (order(i + 1) - mean);
  EXPECT_LT(std::abs(sum / (size - 1) / variance), 5 / std::sqrt(double(size)));
}

TEST(Permutation, NeedsNoTableForHugeSizes) {
  Permutation order(int64_t{1} << 50, 1);
  EXPECT_NE(order(0), order(1));
}

TEST(Sampler, ShufflesDifferentlyEachEpochAndSeed) {
  auto sampler = shuffled(1000);
  auto epoch = [&](uint64_t seed, uint64_t number) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < 1000; ++i) order.push_back(sampler->index(seed, number, i));
    return order;
  };
  EXPECT_EQ(epoch(1, 2), epoch(1, 2));
  EXPECT_NE(epoch(1, 2), epoch(1, 3));
  EXPECT_NE(epoch(1, 2), epoch(2, 2));
}

TEST(Sampler, WeightsAreProportions) {
  const std::vector<double> weights{0, 1, 2, 7};
  auto sampler = weighted(weights, 100'000);
  std::vector<int> counts(4);
  for (int64_t i = 0; i < sampler->size(); ++i) ++counts[sampler->index(0, 0, i)];
  EXPECT_EQ(counts[0], 0);
  for (int i = 1; i < 4; ++i) EXPECT_NEAR(counts[i], weights[i] * 10'000, 500);
}

TEST(Sampler, FingerprintsDependOnEveryBitOfTheWeights) {
  EXPECT_NE(weighted({1e-7, 4e-7}, 10)->fingerprint(), weighted({4e-7, 1e-7}, 10)->fingerprint());
  EXPECT_NE(weighted({1, 0.1}, 9)->fingerprint(), weighted({1, 0.1 + 1e-16}, 9)->fingerprint());
  EXPECT_EQ(weighted({1, 0.0}, 9)->fingerprint(), weighted({1, -0.0}, 9)->fingerprint());
}

TEST(Sampler, BalancedDrawsEachLabelEquallyOften) {
  std::vector<int64_t> labels(1000, 0);
  labels[17] = 1;
  auto sampler = balanced(labels, 10'000);
  int rare = 0;
  for (int64_t i = 0; i < sampler->size(); ++i) rare += sampler->index(3, 0, i) == 17;
  EXPECT_NEAR(rare, 5000, 300);
}

TEST(Sampler, RejectsInvalidWeights) {
  EXPECT_THROW(weighted({0, 0}, 10), Exception);
  EXPECT_THROW(weighted({1, -1}, 10), Exception);
  EXPECT_THROW(weighted({1e308, 1e308}, 10), Exception);
  EXPECT_THROW(weighted({1, 1}, -5), Exception);
  EXPECT_THROW(balanced({1, 1}, 0), Exception);
  EXPECT_THROW(from_indices({}, false), Exception);
}

// The union over ranks of batch k is the same positions in the same order for every world size.
TEST(Sampler, IsTheSameGlobalOrderOnEveryWorldSize) {
  for (LastBatch last : {LastBatch::kKeep, LastBatch::kDrop, LastBatch::kPad}) {
    for (int world : {1, 2, 3, 4}) {
      BatchLayout reference(1003, 24, 0, 1, last);
      for (int64_t batch = 0; batch < reference.batches(); ++batch) {
        int64_t at = reference.range(batch).begin;
        for (int rank = 0; rank < world; ++rank) {
          BatchLayout layout(1003, 24, rank, world, last);
          ASSERT_EQ(layout.batches(), reference.batches());
          ASSERT_EQ(layout.range(batch).begin, at);
          at = layout.range(batch).end;
        }
        ASSERT_EQ(at, reference.range(batch).end);
      }
    }
  }
}

TEST(Sampler, CountsBatchesByPolicy) {
  EXPECT_EQ(BatchLayout(10, 4, 0, 1, LastBatch::kKeep).batches(), 3);
  EXPECT_EQ(BatchLayout(10, 4, 0, 1, LastBatch::kKeep).range(2).size(), 2);
  EXPECT_EQ(BatchLayout(10, 4, 0, 1, LastBatch::kDrop).batches(), 2);
  EXPECT_EQ(BatchLayout(10, 4, 0, 1, LastBatch::kPad).range(2).size(), 4);
  EXPECT_EQ(BatchLayout(8, 4, 0, 1, LastBatch::kPad).batches(), 2);
}

TEST(Sampler, RejectsARankWithoutRecords) {
  EXPECT_THROW(BatchLayout(9, 8, 0, 2, LastBatch::kKeep), Exception);
  EXPECT_THROW(BatchLayout(9, 9, 0, 2, LastBatch::kKeep), Exception);
  EXPECT_NO_THROW(BatchLayout(9, 8, 0, 2, LastBatch::kPad));
}

}  // namespace
}  // namespace headrace
