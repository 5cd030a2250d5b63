// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/external_order.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "headrace/base/error.h"
#include "headrace/sampling/batches_by_length.h"

namespace headrace {
namespace {

// Epoch e of seed s is 100 s + 10 e, and the numbers after it.
ExternalOrder numbers(int64_t positions, std::atomic<int>* calls = nullptr) {
  return {.ask =
              [=](uint64_t seed, uint64_t epoch) {
                if (calls) ++*calls;
                std::vector<int64_t> out;
                for (int64_t i = 0; i < positions; ++i)
                  out.push_back(int64_t(100 * seed + 10 * epoch) + i);
                return from_indices(std::move(out), false);
              },
          .positions = positions,
          .batch_sizes = {},
          .fingerprint = 5,
          .description = "asked"};
}

TEST(ExternalOrder, IsAFunctionOfSeedAndEpochCalledOncePerEpoch) {
  std::atomic<int> calls = 0;
  const SamplerPtr sampler = external_order(numbers(6, &calls));
  EXPECT_EQ(sampler->size(), 6);
  for (int64_t position : {0, 5, 3}) EXPECT_EQ(sampler->index(1, 2, position), 120 + position);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(sampler->index(1, 3, 4), 134);
  EXPECT_EQ(sampler->index(1, 2, 0), 120);
  EXPECT_EQ(calls, 2);
}

TEST(ExternalOrder, CallsTheFunctionAgainForForgottenEpochs) {
  std::atomic<int> calls = 0;
  const SamplerPtr sampler = external_order(numbers(6, &calls));
  sampler->index(0, 0, 1);
  sampler->forget();
  EXPECT_EQ(sampler->index(0, 0, 1), 1);
  EXPECT_EQ(calls, 2);
}

TEST(ExternalOrder, RemembersTheCurrentEpochDespiteOtherQueries) {
  std::atomic<int> calls = 0;
  const SamplerPtr sampler = external_order(numbers(6, &calls));
  for (uint64_t epoch = 1; epoch < 20; ++epoch) {
    sampler->index(0, 0, 1);
    sampler->index(0, epoch, 1);
  }
  EXPECT_EQ(calls, 20);
}

TEST(ExternalOrder, BatchesOfVaryingSizeHaveConsecutivePositions) {
  ExternalOrder order = numbers(6);
  order.batch_sizes = {3, 1, 2};
  const SamplerPtr sampler = external_order(std::move(order));
  ASSERT_EQ(sampler->size(), 9);
  const std::vector<int64_t> expected = {0, 1, 2, 3, 3, 3, 4, 5, 4};
  for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(sampler->index(0, 0, i), expected[size_t(i)]) << i;
}

TEST(ExternalOrder, AnEpochOfADifferentLengthIsAnError) {
  ExternalOrder order = numbers(6);
  order.positions = 5;
  const SamplerPtr sampler = external_order(std::move(order));
  try {
    sampler->index(0, 7, 0);
    FAIL() << "it was taken";
  } catch (const Exception& raised) {
    EXPECT_EQ(raised.error().code->id, "HR0726");
    EXPECT_NE(std::string(raised.what()).find("epoch 7 has 6 records"), std::string::npos);
  }
  EXPECT_THROW(external_order(numbers(0)), Exception);
}

// Changing weights, growing subsets: each epoch has its own order.
TEST(ExternalOrder, AnEpochUsesItsOrder) {
  ExternalOrder order = numbers(6);
  order.ask = [](uint64_t, uint64_t epoch) { return epoch == 0 ? sequential(6) : shuffled(6); };
  const SamplerPtr sampler = external_order(std::move(order));
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(sampler->index(3, 0, i), i);
    EXPECT_EQ(sampler->index(3, 2, i), shuffled(6)->index(3, 2, i));
  }
}

TEST(ExternalOrder, BatchSizesThatDifferFromTheFirstEpochAreAnError) {
  ExternalOrder order = numbers(4);
  order.batch_sizes = {2, 2};
  order.ask = [](uint64_t, uint64_t epoch) {
    return within_budget({1, 1, 1, 1}, epoch == 0 ? 2 : 4, 1);
  };
  const SamplerPtr sampler = external_order(std::move(order));
  EXPECT_EQ(sampler->index(3, 0, 3), within_budget({1, 1, 1, 1}, 2, 1)->index(3, 0, 3));
  EXPECT_THROW(sampler->index(3, 1, 0), Exception);
}

TEST(ExternalOrder, ThreadsAgree) {
  const SamplerPtr sampler = external_order(numbers(64));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 6400; ++i) {
        const auto epoch = uint64_t(i / 64 % 7 + t);
        if (sampler->index(0, epoch, i % 64) != int64_t(10 * epoch) + i % 64) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace headrace
