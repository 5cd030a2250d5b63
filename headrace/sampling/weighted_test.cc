// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "headrace/sampling/order_test_promises.h"

namespace headrace {
namespace {

TEST(WeightedOnce, DrawsTheRemainingRecordsInProportionToTheirWeights) {
  const std::vector<double> weights = {1, 2, 0, 5};
  const SamplerPtr order = weighted_once(weights, 2);
  std::map<std::pair<int64_t, int64_t>, int> met;
  constexpr int kEpochs = 40'000;
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    ++met[{order->index(1, epoch, 0), order->index(1, epoch, 1)}];
  }
  for (const int64_t first : {0, 1, 3}) {
    for (const int64_t second : {0, 1, 3}) {
      if (first == second) continue;
      const double a = weights[size_t(first)], b = weights[size_t(second)];
      const double expected = a / 8 * b / (8 - a);
      const double seen = double(met[{first, second}]) / kEpochs;
      EXPECT_NEAR(seen, expected, 4 * std::sqrt(expected / kEpochs)) << first << " " << second;
    }
  }
  EXPECT_EQ(met.size(), 6u);
}

TEST(WeightedOnce, AllRecordsOfPositiveWeightAreDrawnOnce) {
  const SamplerPtr order = weighted_once({1e-300, 1e300, 3, 0.5}, 4);
  expect_each_record_once(*order, 4);
  expect_order_promises(*order, 4);
}

TEST(WeightedOnce, RejectsMoreDrawsThanDrawableRecords) {
  try {
    weighted_once({1, 0, 2}, 3);
    FAIL() << "it was taken";
  } catch (const Exception& raised) {
    EXPECT_EQ(raised.error().code->id, "HR0722");
    EXPECT_NE(std::string(raised.what()).find("only 2 of 3 weights"), std::string::npos);
  }
  EXPECT_THROW(weighted_once({1, -1}, 1), Exception);
  EXPECT_THROW(weighted_once({1, std::nan("")}, 1), Exception);
  EXPECT_THROW(weighted_once({0, 0}, 1), Exception);
}

}  // namespace
}  // namespace headrace
