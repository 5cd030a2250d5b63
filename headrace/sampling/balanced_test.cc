// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "headrace/sampling/order_test_promises.h"

namespace headrace {
namespace {

const std::vector<int64_t> kLabelsOfBalance = {4, 4, 4, 4, 4, 9, 9, -1};

TEST(BalancedExactly, EachLabelIsDrawnOncePerRound) {
  const SamplerPtr order = balanced_exactly(kLabelsOfBalance, 30);
  for (const uint64_t epoch : {0, 1, 7}) {
    for (int64_t round = 0; round < 10; ++round) {
      std::set<int64_t> labels;
      for (int64_t i = 0; i < 3; ++i) {
        labels.insert(kLabelsOfBalance[size_t(order->index(2, epoch, round * 3 + i))]);
      }
      EXPECT_EQ(labels, (std::set<int64_t>{4, 9, -1}));
    }
  }
}

// 7 positions are not a whole number of rounds: the next epoch completes the last round.
TEST(BalancedExactly, AllRecordsOfALabelAreUsedBeforeAnyRepeats) {
  const SamplerPtr order = balanced_exactly(kLabelsOfBalance, 7);
  std::vector<int64_t> of_label;
  for (uint64_t epoch = 0; epoch < 30; ++epoch) {
    for (int64_t i = 0; i < 7; ++i) {
      const int64_t record = order->index(2, epoch, i);
      if (kLabelsOfBalance[size_t(record)] == 4) of_label.push_back(record);
    }
  }
  ASSERT_GE(of_label.size(), 70u);
  std::set<std::vector<int64_t>> passes;
  for (size_t i = 0; i + 5 <= of_label.size(); i += 5) {
    std::vector<int64_t> pass(of_label.begin() + int64_t(i), of_label.begin() + int64_t(i) + 5);
    passes.insert(pass);
    std::ranges::sort(pass);
    EXPECT_EQ(pass, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  }
  EXPECT_GT(passes.size(), 5u);  // each in a different order
}

TEST(BalancedExactly, RejectsSourcesWithoutLabels) {
  EXPECT_THROW(balanced_exactly({}, 3), Exception);
  EXPECT_THROW(balanced_exactly({1}, 0), Exception);
}

}  // namespace
}  // namespace headrace
