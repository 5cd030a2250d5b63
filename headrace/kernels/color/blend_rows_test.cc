// SPDX-License-Identifier: Apache-2.0
// Compares every SIMD level with Pillow's arithmetic, written as Pillow computes it, for all pairs
// of values.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "headrace/kernels/color/color_rows.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace {
namespace {

constexpr int kPastRow = 63;  // what kernels may touch past a row

class BlendRows : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }

  // The number of pairs that differ.
  static int wrong(float factor) {
    constexpr int kAll = 256 * 256;
    std::vector<uint8_t> value(kAll + kPastRow), other(kAll + kPastRow), out(kAll + kPastRow);
    for (int i = 0; i < kAll; ++i) {
      value[size_t(i)] = static_cast<uint8_t>(i);
      other[size_t(i)] = static_cast<uint8_t>(i >> 8);
    }
    blend_row_as_pillow(value.data(), other.data(), kAll, pillow_blend(factor), out.data());
    int count = 0;
    for (int i = 0; i < kAll; ++i) {
      const auto from = static_cast<float>(other[size_t(i)]);
      const float product = factor * (static_cast<float>(value[size_t(i)]) - from);
      const float sum = from + product;
      const int wanted = sum <= 0 ? 0 : sum >= 255 ? 255 : static_cast<int>(sum);
      count += out[size_t(i)] != wanted;
    }
    return count;
  }
};

TEST_P(BlendRows, AreExactForEveryPairOfValues) {
  for (int hundredths = 0; hundredths <= 210; ++hundredths) {
    EXPECT_EQ(wrong(static_cast<float>(hundredths / 100.0)), 0) << hundredths;
  }
  std::mt19937 random(8);
  for (int i = 0; i < 100; ++i) {
    const float factor = std::ldexp(static_cast<float>(random()), -31);
    EXPECT_EQ(wrong(factor), 0) << factor;
  }
  // Thirds and the like, and their neighbors: products that are almost integers.
  for (int part = 3; part < 256; part += 12) {
    const float near = static_cast<float>(part / 2) / static_cast<float>(part);
    EXPECT_EQ(wrong(near), 0) << part;
    EXPECT_EQ(wrong(std::nextafter(near, 0.0f)), 0) << part;
    EXPECT_EQ(wrong(1 + std::nextafter(near, 2.0f)), 0) << part;
  }
}

TEST_P(BlendRows, AreExactForExtremeFactors) {
  for (const float factor : {2.0f, std::nextafter(2.0f, 0.0f), 3.7f, 1e9f, -0.5f, -1e9f,
                             std::numeric_limits<float>::denorm_min()}) {
    EXPECT_EQ(wrong(factor), 0) << factor;
  }
}

TEST(PillowBlends, AreMostlyIntegerArithmetic) {
  int whole = 0;
  for (int bin = 0; bin < 31; ++bin) {  // the strengths of RandAugment and TrivialAugmentWide
    for (const double most : {0.9, -0.9, 0.99, -0.99}) {
      const auto factor = static_cast<float>(1 + most * bin / 30);
      whole += pillow_blend(factor).offset != PillowBlend::kNone;
    }
  }
  EXPECT_GE(whole, 110) << "of 124: else every image is blended in floats";
}

INSTANTIATE_TEST_SUITE_P(Levels, BlendRows, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
