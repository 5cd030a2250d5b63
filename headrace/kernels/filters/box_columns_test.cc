// SPDX-License-Identifier: Apache-2.0
// Compares every SIMD level with the documented sums, each computed separately.

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

class BoxColumns : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

TEST_P(BoxColumns, EqualTheSumsForEveryHeightAndRadius) {
  std::mt19937 random(3);
  for (int height = 1; height < 40; height += 1 + height / 6) {
    for (const float radius : {0.0f, 0.01f, 0.7f, 1.0f, 2.4f, 7.9f, 60.5f}) {
      const BoxWeights weights = BoxWeights::of(radius);
      const size_t size = size_t(height) * kBoxColumns;
      std::vector<uint8_t> in(size), out(size);
      for (uint8_t& v : in) v = random() % 8 == 0 ? 255 : static_cast<uint8_t>(random());
      box_columns(in.data(), height, weights, out.data());
      for (int i = 0; i < static_cast<int>(size); ++i) {
        const int x = i % kBoxColumns, y = i / kBoxColumns;
        const auto at = [&](int row) -> uint64_t {
          return in[size_t(std::clamp(row, 0, height - 1) * kBoxColumns + x)];
        };
        uint64_t sum = (at(y - weights.reach - 1) + at(y + weights.reach + 1)) * weights.end;
        for (int d = -weights.reach; d <= weights.reach; ++d) sum += at(y + d) * weights.inside;
        ASSERT_EQ(out[size_t(i)], (sum + (1 << 23)) >> 24) << height << ", " << radius << ", " << i;
      }
    }
  }
}

// Sums never exceed 32 bits, and a constant picture is unchanged.
TEST_P(BoxColumns, WhiteRemainsWhite) {
  for (const float radius : {0.3f, 5.6f, 1700.2f}) {
    const std::vector<uint8_t> white(5 * kBoxColumns, 255);
    std::vector<uint8_t> out(white.size());
    box_columns(white.data(), 5, BoxWeights::of(radius), out.data());
    EXPECT_EQ(out, white) << radius;
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, BoxColumns, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
