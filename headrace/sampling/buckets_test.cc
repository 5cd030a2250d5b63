// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <thread>

#include "headrace/sampling/batches_by_length.h"

namespace headrace {
namespace {

std::vector<int64_t> lognormal_lengths(int64_t records, double sigma = 0.6) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(0, sigma);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < records; ++i) out.push_back(int64_t(16000 * std::exp(normal(random))));
  return out;
}

std::vector<int64_t> epoch_of(const Sampler& sampler, uint64_t epoch) {
  std::vector<int64_t> out(static_cast<size_t>(sampler.size()));
  sampler.indices(3, epoch, 0, out);
  return out;
}

// The fraction of padding in all batches.
double padding(const std::vector<int64_t>& order, const std::vector<int64_t>& lengths,
               int64_t batch) {
  int64_t all = 0, real = 0;
  for (size_t begin = 0; begin < order.size(); begin += size_t(batch)) {
    const size_t end = std::min(order.size(), begin + size_t(batch));
    int64_t longest = 0;
    for (size_t i = begin; i < end; ++i) {
      longest = std::max(longest, lengths[size_t(order[i])]);
      real += lengths[size_t(order[i])];
    }
    all += longest * int64_t(end - begin);
  }
  return 1 - double(real) / double(all);
}

TEST(Buckets, HaveEachRecordOnceInEveryEpoch) {
  for (const int64_t records : {1, 7, 64, 65, 1000, 6401}) {
    const SamplerPtr sampler = buckets(lognormal_lengths(records), 16, 5);
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      const std::vector<int64_t> order = epoch_of(*sampler, epoch);
      EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), size_t(records));
    }
    if (records > 60) {
      EXPECT_NE(epoch_of(*sampler, 0), epoch_of(*sampler, 1));
    }
  }
}

TEST(Buckets, PadAtMostAQuarterAsMuchAsRandomBatches) {
  const std::vector<int64_t> lengths = lognormal_lengths(20000);
  const double random = padding(epoch_of(*shuffled(20000), 0), lengths, 64);
  const double sorted = padding(epoch_of(*buckets(lengths, 64, 100), 0), lengths, 64);
  EXPECT_LT(sorted, random / 4);
}

TEST(Buckets, RejectANegativeLength) {
  EXPECT_NO_THROW(buckets({5, 0, 3}, 2, 1));
  EXPECT_THROW(buckets({5, 3, -1}, 2, 1), Exception);
  EXPECT_THROW(buckets({}, 2, 1), Exception);
}

TEST(Buckets, AnyPositionEqualsThePositionInTheWholeOrder) {
  const SamplerPtr sampler = buckets(lognormal_lengths(3000), 32, 10);
  const std::vector<int64_t> order = epoch_of(*sampler, 1);
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    const auto position = int64_t(random() % 3000);
    ASSERT_EQ(sampler->index(3, 1, position), order[size_t(position)]);
  }
}

TEST(Buckets, SlicesOfABatchAreSimilarOnAllRanks) {
  const std::vector<int64_t> lengths = lognormal_lengths(64 * 400);
  const std::vector<int64_t> order = epoch_of(*buckets(lengths, 64, 100), 0);
  double first = 0, second = 0;  // of the halves of batches
  for (size_t i = 0; i < order.size(); ++i) {
    (i % 64 < 32 ? first : second) += double(lengths[size_t(order[i])]);
  }
  EXPECT_NEAR(first / second, 1, 0.01);
}

// The last batch is short, and must not always contain the longest or shortest.
TEST(Buckets, TheRemainderIsRandom) {
  const std::vector<int64_t> lengths = lognormal_lengths(1010);
  const SamplerPtr sampler = buckets(lengths, 100, 3);
  double all = 0, rest = 0;
  for (const int64_t length : lengths) all += double(length) / 1010;
  for (uint64_t epoch = 0; epoch < 400; ++epoch) {
    const std::vector<int64_t> order = epoch_of(*sampler, epoch);
    for (size_t i = 1000; i < 1010; ++i) rest += double(lengths[size_t(order[i])]) / 4000;
  }
  EXPECT_NEAR(rest / all, 1, 0.05);
}

TEST(Buckets, AreTheSameOnAllThreads) {
  const SamplerPtr sampler = buckets(lognormal_lengths(5000), 10, 10);
  const std::vector<int64_t> order = epoch_of(*sampler, 0);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = t; i < 5000; i += 4)
        wrong[size_t(t)] += sampler->index(3, 0, i) != order[size_t(i)];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

}  // namespace
}  // namespace headrace
