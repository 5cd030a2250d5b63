// SPDX-License-Identifier: Apache-2.0
// Compares every SIMD level with the definition; tests/test_colors.py compares it with the
// libraries.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/filters/filter_rows.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace {
namespace {

class SharpenRows : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

TEST_P(SharpenRows, EqualTheDefinitionForEveryWidthAndKeepTheEnds) {
  std::mt19937 random(6);
  for (int width = 1; width < 120; ++width) {
    std::vector<uint8_t> rows[3];
    for (auto& row : rows) {
      for (int x = 0; x < width; ++x) row.push_back(static_cast<uint8_t>(random()));
      row.resize(size_t(width) + 63);
    }
    const ThreeRows in{rows[0].data(), rows[1].data(), rows[2].data()};
    const double factor = random() % 300 / 100.0;
    const auto own = static_cast<float>(factor), rest = static_cast<float>(1.0 - factor);
    std::vector<uint8_t> torch(size_t(width) + 63, 99), pillow(size_t(width) + 63, 99);
    sharpen_row(in, width, rest, torch.data());
    sharpen_row_as_pillow(in, width, pillow_blend(own), pillow.data());
    for (int x = 0; x < width - 1; ++x) {
      int blur = 0;
      if (x > 0 && x < width - 1) {
        for (const auto& row : rows) blur += row[x - 1] + row[x] + row[x + 1];
        blur = static_cast<int>(std::lround((blur + 4 * rows[1][x]) / 13.0));
      }
      const bool inner = x > 0 && x < width - 1;
      const float value = inner ? rows[1][x] : 0;
      const float by_torch = std::fma(static_cast<float>(blur) - value, rest, value);
      const float by_pillow = static_cast<float>(blur) + own * (value - static_cast<float>(blur));
      const auto byte = [](float v) { return static_cast<int>(std::clamp(v, 0.0f, 255.0f)); };
      ASSERT_EQ(torch[x], inner ? byte(by_torch) : 99) << width << ", " << x;
      ASSERT_EQ(pillow[x], inner ? byte(by_pillow) : 99) << width << ", " << x;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, SharpenRows, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
