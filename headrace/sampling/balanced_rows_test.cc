// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "headrace/sampling/batches_by_length.h"

namespace headrace {
namespace {

TEST(BalancedRows, ContainEachRowOnce) {
  for (int64_t rows = 1; rows < 200; ++rows) {
    std::vector<int64_t> all(static_cast<size_t>(rows)), order = balanced_rows(rows, rows / 2);
    std::iota(all.begin(), all.end(), 0);
    std::ranges::sort(order);
    ASSERT_EQ(order, all);
  }
}

// Costs from 1 to 3: slices of a sorted batch would differ threefold.
TEST(BalancedRows, EqualSlicesCostTheSameForAnyNumberOfRanks) {
  for (const int64_t rows : {96, 240, 1000}) {
    for (const int64_t world : {2, 3, 4, 6, 8}) {
      for (const int64_t turn : {int64_t{0}, rows / 3}) {
        const std::vector<int64_t> order = balanced_rows(rows, turn);
        double most = 0, all = 0;
        for (int64_t rank = 0; rank < world; ++rank) {
          double cost = 0;
          const int64_t begin = rows * rank / world, end = rows * (rank + 1) / world;
          for (int64_t i = begin; i < end; ++i) {
            cost += 1 + 2 * double(order[size_t(i)]) / double(rows);
          }
          most = std::max(most, cost / double(end - begin));
          all += cost;
        }
        EXPECT_LT(most / (all / double(rows)), 1.08) << rows << " " << world << " " << turn;
      }
    }
  }
}

}  // namespace
}  // namespace headrace
