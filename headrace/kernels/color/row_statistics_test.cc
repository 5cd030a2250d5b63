// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "headrace/kernels/color/color_rows.h"

namespace headrace {
namespace {

TEST(RowStatistics, AreExactForRowsOfEveryLength) {
  std::mt19937 random(5);
  for (int count = 1; count < 300; ++count) {
    std::vector<uint8_t> row(count);
    const uint32_t range = 1 + random() % 256;
    for (uint8_t& sample : row) sample = static_cast<uint8_t>(random() % range);
    EXPECT_EQ(sum_of_row(row.data(), count), std::accumulate(row.begin(), row.end(), uint64_t{0}));
    uint8_t least = 255, most = 0;
    extend_by_row(row.data(), count, least, most);
    EXPECT_EQ(least, *std::min_element(row.begin(), row.end()));
    EXPECT_EQ(most, *std::max_element(row.begin(), row.end()));
    int64_t histogram[256] = {};
    histogram[0] = 7;  // adds to existing counts
    count_row(row.data(), count, histogram);
    std::map<int, int64_t> counts{{0, 7}};
    for (const uint8_t sample : row) ++counts[sample];
    for (int value = 0; value < 256; ++value) ASSERT_EQ(histogram[value], counts[value]);
  }
}

TEST(RowStatistics, ASumOfMoreThan32BitsIsExact) {
  const std::vector<uint8_t> row(20'000'000, 255);
  EXPECT_EQ(sum_of_row(row.data(), 20'000'000), uint64_t{5'100'000'000});
}

TEST(RowStatistics, AreUnchangedByEmptyRows) {
  uint8_t least = 9, most = 3;
  extend_by_row(nullptr, 0, least, most);
  EXPECT_EQ(sum_of_row(nullptr, 0), 0u);
  EXPECT_EQ(least, 9);
  EXPECT_EQ(most, 3);
}

}  // namespace
}  // namespace headrace
