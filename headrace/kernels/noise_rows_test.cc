// SPDX-License-Identifier: Apache-2.0
// Compares every SIMD level with base/random.h's counters and the definition in double precision.
#include "headrace/kernels/noise_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "headrace/base/random.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace {
namespace {

class NoiseRows : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

constexpr uint64_t kKey = 0x1234567890abcdef;

// Number `at` of a row: a word of a Philox counter's output.
uint32_t word_at(uint32_t row, int at) {
  const int tile = at / 64, within = at % 64;
  const auto block = static_cast<uint32_t>(tile * 16 + within % 16);
  return philox4x32_10({block, row, 0, 0}, {static_cast<uint32_t>(kKey),
                                            static_cast<uint32_t>(kKey >> 32)})[within / 16];
}

TEST_P(NoiseRows, DependOnlyOnTheirPosition) {
  for (const int count : {1, 16, 63, 64, 65, 200}) {
    std::vector<uint32_t> row(noise_room(count) + 1, 7);
    random_row(kKey, 5, count, row.data());
    for (int i = 0; i < count; ++i) ASSERT_EQ(row[size_t(i)], word_at(5, i)) << i;
    EXPECT_EQ(row.back(), 7u);
  }
}

TEST_P(NoiseRows, AreTheSameInColumnsAsInRows) {
  for (const int width : {1, 15, 16, 17, 40}) {
    for (const int height : {1, 16, 17, 63, 65, 130}) {
      const int stride = (width + 15) / 16 * 16;
      std::vector<float> out(size_t(stride) * size_t(height) + 1, 7.0f);
      uniform_columns(kKey, width, height, stride, out.data());
      for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
          const float wanted = float(word_at(uint32_t(x), y) >> 8) / 8388608.0f - 1.0f;
          ASSERT_EQ(out[size_t(y) * size_t(stride) + size_t(x)], wanted) << x << ", " << y;
        }
      }
      EXPECT_EQ(out.back(), 7.0f);
    }
  }
}

TEST_P(NoiseRows, AreNormalByTheBoxMullerTransform) {
  constexpr int kCount = 4096;
  std::vector<float> row(kCount);
  double sum = 0, squares = 0;
  for (uint32_t y = 0; y < 100; ++y) {
    normal_row(kKey, y, kCount, row.data());
    for (int i = 0; i < kCount; ++i) {
      const int pair = i % 64 / 16 / 2 * 2, first = i / 64 * 64 + pair * 16 + i % 16;
      const uint32_t of_radius = word_at(y, first), of_angle = word_at(y, first + 16);
      const double radius = std::sqrt(-2 * std::log(((of_radius >> 8) + 1) * 0x1p-24));
      const double part = ((of_angle & 0x3fffffff) >> 6) * 0x1p-24 - 0.5;
      double x = std::cos(part * std::numbers::pi / 2), y1 = std::sin(part * std::numbers::pi / 2);
      if (of_angle & 0x40000000) std::swap(x, y1);
      const double sign = of_angle >> 31 ? -1 : 1;
      ASSERT_NEAR(row[size_t(i)], sign * radius * (i % 64 / 16 % 2 ? y1 : x), 4e-6);
      sum += row[size_t(i)];
      squares += double(row[size_t(i)]) * row[size_t(i)];
    }
  }
  EXPECT_NEAR(sum / (100 * kCount), 0, 4 / std::sqrt(100.0 * kCount));
  EXPECT_NEAR(squares / (100 * kCount), 1, 0.01);
}

TEST_P(NoiseRows, GiveTheSameBitsAsTheScalarLevel) {
  for (uint32_t y = 0; y < 300; ++y) {
    std::vector<float> row(512), twin(512);
    normal_row(kKey, y, 512, row.data());
    set_simd_level(SimdLevel::kScalar);
    normal_row(kKey, y, 512, twin.data());
    set_simd_level(GetParam());
    ASSERT_EQ(row, twin);
  }
}

TEST_P(NoiseRows, BecomeSaltAndPepperBelowTheirThresholds) {
  for (const int count : {1, 17, 64, 200}) {
    std::vector<uint32_t> numbers(noise_room(count));
    random_row(kKey, 9, count, numbers.data());
    std::vector<uint8_t> in(size_t(count) + 63, 77), out(size_t(count) + 63);
    const int32_t white = 0x20000000, either = 0x50000000;
    salt_and_pepper_row(in.data(), numbers.data(), count, white, either, out.data());
    for (int i = 0; i < count; ++i) {
      const auto number = static_cast<int32_t>(numbers[size_t(i)] >> 1);
      ASSERT_EQ(out[size_t(i)], number < white ? 255 : number < either ? 0 : 77) << i;
    }
  }
}

TEST_P(NoiseRows, AreAddedAsInTorchvision) {
  for (const bool clip : {true, false}) {
    std::vector<uint8_t> in(256 + 63), out(256 + 63);
    std::vector<float> noise(256 + 63);
    for (int i = 0; i < 256; ++i) {
      in[size_t(i)] = static_cast<uint8_t>(i);
      noise[size_t(i)] = static_cast<float>((i * 37 % 256 - 128) / 40.0);
    }
    add_noise_row(in.data(), noise.data(), 256, {.mean = 3.5f, .sigma = 60, .clip = clip},
                  out.data());
    for (int i = 0; i < 256; ++i) {
      const int sum = i + static_cast<int>(3.5f + noise[size_t(i)] * 60);
      ASSERT_EQ(out[size_t(i)], clip ? std::clamp(sum, 0, 255) : sum & 255) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, NoiseRows, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
