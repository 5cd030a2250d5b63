// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/filters/filter_rows.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace {
namespace {

class MedianRows : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

TEST_P(MedianRows, AreTheMiddleOfSortedValues) {
  std::mt19937 random(3);
  for (int width = 1; width < 140; width += 3) {
    for (const int size : {3, 5, 7}) {
      std::vector<std::vector<uint8_t>> rows;
      std::vector<const uint8_t*> pointers;
      for (int r = 0; r < size; ++r) {
        std::vector<uint8_t>& row = rows.emplace_back(width + size + 64);
        for (uint8_t& value : row) value = static_cast<uint8_t>(random() % (width % 2 ? 256 : 9));
      }
      for (const auto& row : rows) pointers.push_back(row.data());
      std::vector<uint8_t> out(width + 64);
      median_row(pointers.data(), size, width, out.data());
      for (int x = 0; x < width; ++x) {
        std::vector<uint8_t> values;
        for (const auto& row : rows) values.insert(values.end(), &row[x], &row[x] + size);
        std::sort(values.begin(), values.end());
        ASSERT_EQ(out[x], values[values.size() / 2]) << size << ", " << x;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, MedianRows, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
