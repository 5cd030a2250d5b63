// SPDX-License-Identifier: Apache-2.0
// Compares every SIMD level with the documented chain of fused multiply-adds.

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

constexpr int kPadding = 15;

class ConvolveRows : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

TEST_P(ConvolveRows, EqualTheDefinitionForEveryWidthAndManyTaps) {
  std::mt19937 random(8);
  std::uniform_real_distribution<float> uniform(-20, 300);
  for (int count = 1; count < 150; ++count) {
    const int taps = 1 + static_cast<int>(random() % 25);
    std::vector<float> in(count + taps + kPadding), weights(taps), made(count + kPadding);
    for (float& v : in) v = uniform(random);
    for (float& v : weights) v = uniform(random) / 300;
    convolve_along(in.data(), weights.data(), taps, count, made.data());
    std::vector<std::vector<float>> rows(taps, std::vector<float>(count + kPadding));
    std::vector<const float*> pointers;
    for (auto& row : rows) {
      for (float& v : row) v = uniform(random) / static_cast<float>(taps);
      pointers.push_back(row.data());
    }
    std::vector<uint8_t> bytes(count + kPadding);
    std::vector<float> numbers(count + kPadding);
    convolve_across(pointers.data(), weights.data(), taps, count, numbers.data());
    convolve_across(pointers.data(), weights.data(), taps, count, bytes.data());
    for (int i = 0; i < count; ++i) {
      float along = 0, across = 0;
      for (int t = 0; t < taps; ++t) along = std::fma(in[i + t], weights[t], along);
      for (int t = 0; t < taps; ++t) across = std::fma(rows[t][i], weights[t], across);
      ASSERT_EQ(numbers[i], across) << count << ", " << i;
      ASSERT_EQ(made[i], along) << count << ", " << i;
      ASSERT_EQ(bytes[i], std::clamp(std::nearbyint(across), 0.0f, 255.0f)) << count << ", " << i;
    }
  }
}

TEST_P(ConvolveRows, TiesRoundToEven) {
  const float row[1 + kPadding] = {2.5f}, weight = 1;
  const float* const rows[] = {row};
  uint8_t out[1 + kPadding];
  convolve_across(rows, &weight, 1, 1, out);
  EXPECT_EQ(out[0], 2);
}

INSTANTIATE_TEST_SUITE_P(Levels, ConvolveRows, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
