// SPDX-License-Identifier: Apache-2.0
// A million values for each kernel that blends in floats, at each SIMD level of each build: detects
// a compiler that fuses a product with a sum where the reference does not, or vice versa. Expected
// values are computed with every operation rounded separately, through memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "headrace/kernels/color/color_rows.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/filters/filter_rows.h"
#include "headrace/kernels/level_test_names.h"
#include "headrace/kernels/noise_rows.h"
#include "headrace/kernels/warps/warp_rows.h"

namespace headrace {
namespace {

constexpr int kCount = 1000, kRows = 1000;
constexpr int kPadding = 63;  // what kernels may touch past a row

using Row = std::vector<uint8_t>;

template <class Number>
Number rounded(Number v) {
  volatile Number kept = v;
  return kept;
}
float times(float a, float b) { return rounded(a * b); }
float plus(float a, float b) { return rounded(a + b); }
int cut_to_byte(float v) { return static_cast<int>(std::clamp(v, 0.0f, 255.0f)); }

class Rounding : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }

  void fill(Row& row) {
    row.resize(kCount + kPadding);
    for (uint8_t& value : row) value = static_cast<uint8_t>(random_());
  }
  float between(float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(random_);
  }

  // A million three-channel pixels; `make` and `want` get a factor per row.
  using Make = std::function<void(const uint8_t* const* in, float factor, uint8_t* const* out)>;
  using Want = std::function<int(const int (&rgb)[3], int channel, float factor)>;
  void compare(const Make& make, const Want& want) {
    Row in[3], out[3];
    for (int row = 0; row < kRows; ++row) {
      for (Row& channel : in) fill(channel);
      for (Row& channel : out) channel.assign(kCount + kPadding, 0);
      const uint8_t* const from[] = {in[0].data(), in[1].data(), in[2].data()};
      uint8_t* const to[] = {out[0].data(), out[1].data(), out[2].data()};
      const float factor = between(0, 2.5f);
      make(from, factor, to);
      for (int i = 0; i < kCount; ++i) {
        const int rgb[3] = {in[0][i], in[1][i], in[2][i]};
        for (int c = 0; c < 3; ++c) ASSERT_EQ(out[c][i], want(rgb, c, factor)) << row << " " << i;
      }
    }
  }

 private:
  std::mt19937 random_{5};
};

TEST_P(Rounding, SaturationOfTensorsIsFused) {
  compare(
      [](auto in, float factor, auto out) {
        adjust_saturation_rows(in, kCount, factor, float(1.0 - double(factor)), out);
      },
      [](const int(&rgb)[3], int c, float factor) {
        const float gray = std::floor(std::fma(
            float(rgb[2]), 0.114f, std::fma(float(rgb[1]), 0.587f, times(float(rgb[0]), 0.2989f))));
        const float rest = float(1.0 - double(factor));
        return cut_to_byte(std::fma(gray, rest, times(float(rgb[c]), factor)));
      });
}

TEST_P(Rounding, SaturationOfPillowIsNotFused) {
  compare([](auto in, float factor,
             auto out) { saturate_rows_as_pillow(in, kCount, pillow_blend(factor), out); },
          [](const int(&rgb)[3], int c, float factor) {
            const int gray = (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16;
            return cut_to_byte(plus(float(gray), times(factor, float(rgb[c] - gray))));
          });
}

// torchvision's _rgb_to_hsv and _hsv_to_rgb.
TEST_P(Rounding, HueOfTensorsIsNotFused) {
  compare([](auto in, float factor, auto out) { shift_hue_rows(in, kCount, factor / 5, out); },
          [](const int(&rgb)[3], int c, float factor) {
            float v[3];
            for (int k = 0; k < 3; ++k) v[k] = times(float(rgb[k]), float(1.0 / 255));
            const float most = std::max({v[0], v[1], v[2]}), least = std::min({v[0], v[1], v[2]});
            const bool gray = most == least;
            const float range = rounded(most - least), divisor = gray ? 1.0f : range;
            const float saturation = rounded(range / (gray ? 1.0f : most));
            float from[3];
            for (int k = 0; k < 3; ++k) from[k] = rounded(rounded(most - v[k]) / divisor);
            float hue = rounded(plus(4.0f, from[1]) - from[0]);
            if (most == v[1]) hue = rounded(plus(2.0f, from[0]) - from[2]);
            if (most == v[0]) hue = rounded(from[2] - from[1]);
            hue = rounded(std::fmod(plus(times(hue, float(1.0 / 6)), 1.0f), 1.0f));
            hue = plus(hue, factor / 5);
            hue = rounded(hue - std::floor(hue));
            const float sixths = times(hue, 6.0f), sector = std::floor(sixths);
            const float within = rounded(sixths - sector);
            const auto shade = [&](float less) { return times(most, rounded(1.0f - less)); };
            const float p = shade(saturation), q = shade(times(saturation, within)),
                        t = shade(times(saturation, rounded(1.0f - within)));
            const float sectors[6][3] = {{most, t, p}, {q, most, p}, {p, most, t},
                                         {p, q, most}, {t, p, most}, {most, p, q}};
            return static_cast<int>(
                times(std::clamp(sectors[static_cast<int>(sector) % 6][c], 0.0f, 1.0f), 255.999f));
          });
}

TEST_P(Rounding, SharpnessOfTensorsIsFusedAndOfPillowIsNot) {
  Row rows[3], torch(kCount + kPadding), pillow(kCount + kPadding);
  for (int n = 0; n < kRows; ++n) {
    for (Row& row : rows) fill(row);
    const ThreeRows in{rows[0].data(), rows[1].data(), rows[2].data()};
    const float factor = between(0, 2.5f), rest = float(1.0 - double(factor));
    sharpen_row(in, kCount, rest, torch.data());
    sharpen_row_as_pillow(in, kCount, pillow_blend(factor), pillow.data());
    for (int i = 1; i + 1 < kCount; ++i) {
      int weighted = 4 * rows[1][i];
      for (const Row& row : rows) weighted += row[i - 1] + row[i] + row[i + 1];
      const float value = rows[1][i], blur = float((2 * weighted + 13) / 26);
      ASSERT_EQ(torch[i], cut_to_byte(std::fma(rounded(blur - value), rest, value))) << n;
      ASSERT_EQ(pillow[i], cut_to_byte(plus(blur, times(factor, rounded(value - blur))))) << n;
    }
  }
}

TEST_P(Rounding, ConvolutionsAreChainsOfFusedSums) {
  constexpr int kTaps = 5;
  std::vector<float> in(kCount + kTaps + kPadding), out(kCount + kPadding);
  for (int n = 0; n < kRows; ++n) {
    for (float& value : in) value = between(0, 255);
    float weights[kTaps];
    for (float& weight : weights) weight = between(0, 0.4f);
    convolve_along(in.data(), weights, kTaps, kCount, out.data());
    for (int i = 0; i < kCount; ++i) {
      float want = 0;
      for (int t = 0; t < kTaps; ++t) want = rounded(std::fma(in[i + t], weights[t], want));
      ASSERT_EQ(out[i], want) << n << " " << i;
    }
  }
}

TEST_P(Rounding, NoiseIsNotFused) {
  Row in, out(kCount + kPadding);
  std::vector<float> noise(noise_room(kCount));
  for (int n = 0; n < kRows; ++n) {
    fill(in);
    normal_row(7, static_cast<uint32_t>(n), kCount, noise.data());
    const ByteNoise how{.mean = between(-9, 9), .sigma = between(0, 60), .clip = true};
    add_noise_row(in.data(), noise.data(), kCount, how, out.data());
    for (int i = 0; i < kCount; ++i) {
      const int away = static_cast<int>(plus(how.mean, times(noise[i], how.sigma)));
      ASSERT_EQ(out[i], std::clamp(in[i] + away, 0, 255)) << n << " " << i;
    }
  }
}

TEST_P(Rounding, WarpPositionsAreFusedAsInTorch) {
  std::vector<float> x(kCount + kPadding), y(kCount + kPadding);
  for (int n = 0; n < kRows; ++n) {
    TorchGrid grid{};
    for (int k = 0; k < 3; ++k) grid.x[k] = between(-1, 1), grid.y[k] = between(-1, 1);
    for (float& by : grid.w) by = between(-1e-4f, 1e-4f);
    grid.first_column = between(-200, 0), grid.first_row = between(-200, 0);
    grid.half_width = between(1, 400), grid.half_height = between(1, 400);
    grid.fused = n % 2 == 0, grid.divides = n % 3 == 0;
    torch_positions(grid, n, kCount, x.data(), y.data());
    const float at_y = plus(grid.first_row, float(n));
    const auto dot = [&](float a, float b, float c, float at_x) {
      const float first = times(at_x, a);
      return plus(grid.fused ? rounded(std::fma(at_y, b, first)) : plus(first, times(at_y, b)), c);
    };
    const auto place = [&](const auto& by, float half, int i) {
      const float at_x = plus(grid.first_column, float(i));
      float to = dot(by[0], by[1], by[2], at_x);
      if (grid.divides) {
        to = rounded(rounded(to / dot(grid.w[0], grid.w[1], 1.0f, at_x)) - 1.0f);
      }
      return std::fma(plus(to, 1.0f), half, -0.5f);
    };
    for (int i = 0; i < kCount; ++i) {
      ASSERT_EQ(x[i], place(grid.x, grid.half_width, i)) << n << " " << i;
      ASSERT_EQ(y[i], place(grid.y, grid.half_height, i)) << n << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Rounding, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
