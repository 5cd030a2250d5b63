// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "headrace/sampling/batches_by_length.h"
#include "headrace/sampling/order_test_promises.h"

namespace headrace {
namespace {

TEST(Repeat, EpochsAreConsecutiveSegmentsOfThePasses) {
  const SamplerPtr inner = shuffled(10), order = repeated(inner, 7);
  std::vector<int64_t> all;
  for (uint64_t epoch = 0; epoch < 10; ++epoch) {
    const std::vector<int64_t> drawn = records_of_epoch(*order, 3, epoch);
    EXPECT_EQ(drawn.size(), 7u);
    all.insert(all.end(), drawn.begin(), drawn.end());
  }
  std::vector<int64_t> passes;
  for (uint64_t pass = 0; pass < 7; ++pass) {
    const std::vector<int64_t> drawn = records_of_epoch(*inner, 3, pass);
    passes.insert(passes.end(), drawn.begin(), drawn.end());
  }
  EXPECT_EQ(all, passes);
  expect_order_promises(*order, 10);
}

TEST(Repeat, AnEpochMayHaveSeveralPasses) {
  const SamplerPtr order = repeated(sequential(3), 8);
  EXPECT_EQ(records_of_epoch(*order, 0, 0), (std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(records_of_epoch(*order, 0, 1), (std::vector<int64_t>{2, 0, 1, 2, 0, 1, 2, 0}));
}

TEST(Repeat, WithoutALengthTheEpochIsEndless) {
  const SamplerRecord& record = *Registry<SamplerRecord>::find("repeat");
  const SamplerPtr order = order_of_record(record, 100'000'000, {});
  EXPECT_GT(order->size(), int64_t{1} << 50);
  EXPECT_EQ(order->index(5, 0, 300'000'007), shuffled(100'000'000)->index(5, 3, 7));
}

TEST(Repeat, RejectsOrdersWhoseEpochsEndWithABatch) {
  try {
    repeated(within_budget({1, 2, 3}, 4, 1), 9);
    FAIL() << "it was taken";
  } catch (const Exception& raised) {
    EXPECT_EQ(raised.error().code->id, "HR0729");
  }
  EXPECT_THROW(repeated(sequential(3), 0), Exception);
}

}  // namespace
}  // namespace headrace
