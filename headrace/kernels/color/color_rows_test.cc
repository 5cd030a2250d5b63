// SPDX-License-Identifier: Apache-2.0
// Compares every SIMD level with torchvision's sum, written as torch computes it.
#include "headrace/kernels/color/color_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace {
namespace {

constexpr int kPadding = 63;  // what kernels may touch past a row
using Row = std::vector<uint8_t>;

class ColorRows : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

// r.mul(0.2989).add_(g, alpha=0.587).add_(b, alpha=0.114).to(uint8)
int torch_luma(int r, int g, int b) {
  return static_cast<int>(
      std::fma(float(b), 0.114f, std::fma(float(g), 0.587f, float(r) * 0.2989f)));
}

TEST_P(ColorRows, LumaEqualsTorchsSumForEveryLength) {
  std::mt19937 random(3);
  for (int count = 1; count <= 200; ++count) {
    Row rgb[3];
    for (Row& row : rgb) {
      row.resize(count + kPadding);
      for (uint8_t& sample : row) sample = static_cast<uint8_t>(random());
    }
    const uint8_t* const in[] = {rgb[0].data(), rgb[1].data(), rgb[2].data()};
    Row gray(count + kPadding);
    luma_from_rgb_rows(in, count, gray.data());
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(gray[i], torch_luma(rgb[0][i], rgb[1][i], rgb[2][i])) << count << ", " << i;
    }
  }
}

TEST_P(ColorRows, LumaEqualsTorchsSumForEveryColor) {
  Row red(256 + kPadding), green(256 + kPadding), blue(256 + kPadding), gray(256 + kPadding);
  const uint8_t* const in[] = {red.data(), green.data(), blue.data()};
  for (int i = 0; i < 256; ++i) blue[i] = static_cast<uint8_t>(i);
  for (int r = 0; r < 256; r += GetParam() == SimdLevel::kScalar ? 5 : 1) {
    for (int g = 0; g < 256; ++g) {
      std::fill_n(red.begin(), 256, static_cast<uint8_t>(r));
      std::fill_n(green.begin(), 256, static_cast<uint8_t>(g));
      luma_from_rgb_rows(in, 256, gray.data());
      for (int b = 0; b < 256; ++b) ASSERT_EQ(gray[b], torch_luma(r, g, b));
    }
  }
}

// Note [Three quotients by one division]
TEST(Quotients, ByTheInverseAreCorrectlyRounded) {
  float unit[256];
  for (int i = 0; i < 256; ++i) unit[i] = static_cast<float>(i) * static_cast<float>(1.0 / 255);
  for (int most = 1; most < 256; ++most) {
    for (int least = 0; least < most; ++least) {
      const float divisor = unit[most] - unit[least], inverse = 1.0f / divisor;
      for (int value = least; value <= most; ++value) {
        const float number = unit[most] - unit[value], near = number * inverse;
        const float made = std::fma(std::fma(-near, divisor, number), inverse, near);
        ASSERT_EQ(made, number / divisor) << most << ", " << least << ", " << value;
      }
    }
  }
}

// Every SIMD level gives the same result as the scalar reference, which tests/test_colors.py
// compares with the libraries, and both stop at the end of a row.
TEST_P(ColorRows, RowsOfEveryLengthEqualTheScalarReference) {
  std::mt19937 random(4);
  using Change = std::function<void(const uint8_t* const*, int, uint8_t* const*)>;
  const std::vector<Change> changes{
      [](auto in, int n, auto out) { adjust_saturation_rows(in, n, 1.7f, float(1.0 - 1.7), out); },
      [](auto in, int n, auto out) { adjust_saturation_rows(in, n, 1e9f, float(1.0 - 1e9), out); },
      [](auto in, int n, auto out) { saturate_rows_as_pillow(in, n, pillow_blend(0.3f), out); },
      [](auto in, int n, auto out) { saturate_rows_as_pillow(in, n, pillow_blend(2.4f), out); },
      [](auto in, int n, auto out) { shift_hue_rows(in, n, -0.31f, out); },
      [](auto in, int n, auto out) { shift_hue_rows(in, n, 0.5f, out); },
      [](auto in, int n, auto out) { shift_hue_rows_as_pillow(in, n, -40, out); },
  };
  for (int count = 1; count <= 130; ++count) {
    Row rgb[3], made[3], wanted[3];
    for (int c = 0; c < 3; ++c) {
      rgb[c].resize(count + kPadding);
      made[c].resize(count + kPadding);
      wanted[c].resize(count + kPadding);
      for (uint8_t& sample : rgb[c]) sample = static_cast<uint8_t>(random() % (count + 1) * 37);
    }
    const uint8_t* const in[] = {rgb[0].data(), rgb[1].data(), rgb[2].data()};
    uint8_t* const out[] = {made[0].data(), made[1].data(), made[2].data()};
    uint8_t* const twin[] = {wanted[0].data(), wanted[1].data(), wanted[2].data()};
    for (const Change& change : changes) {
      set_simd_level(GetParam());
      change(in, count, out);
      set_simd_level(SimdLevel::kScalar);
      change(in, count, twin);
      for (int c = 0; c < 3; ++c) {
        for (int i = 0; i < count; ++i) {
          ASSERT_EQ(made[c][i], wanted[c][i]) << &change - changes.data() << ": " << count;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, ColorRows, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
