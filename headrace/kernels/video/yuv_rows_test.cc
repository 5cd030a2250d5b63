// SPDX-License-Identifier: Apache-2.0
// Compared with libswscale's own output, as hashes; and with its formula and the standards' matrix,
// written independently, for every pair of chroma samples.
#include "headrace/kernels/video/yuv_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace {
namespace {

constexpr int kBehind = 63;  // what kernels may touch after a row
constexpr std::array kMatrices = {YuvMatrix::kBT601, YuvMatrix::kBT709, YuvMatrix::kBT2020,
                                  YuvMatrix::kSMPTE240M, YuvMatrix::kFCC};
using Row = std::vector<uint8_t>;
using WideRow = std::vector<uint16_t>;
using Rgb = std::array<Row, 3>;

template <class Sample>
using Yuv = std::array<std::vector<Sample>, 3>;

template <class Sample>
Yuv<Sample> yuv_of(int count) {
  Yuv<Sample> yuv;
  for (auto& row : yuv) row.resize(size_t(count) + kBehind);
  return yuv;
}

Rgb converted(const Yuv<uint8_t>& yuv, bool halved, int count, const YuvCoefficients& by) {
  Rgb rgb;
  for (Row& row : rgb) row.assign(size_t(count) + kBehind, 99);
  const uint8_t* const in[] = {yuv[0].data(), yuv[1].data(), yuv[2].data()};
  uint8_t* const out[] = {rgb[0].data(), rgb[1].data(), rgb[2].data()};
  rgb_from_yuv_row(in, halved, count, by, out);
  return rgb;
}

Rgb converted(const Yuv<uint16_t>& yuv, bool halved, int count, const DeepYuvCoefficients& by) {
  Rgb rgb;
  for (Row& row : rgb) row.assign(size_t(count) + kBehind, 99);
  const uint16_t* const in[] = {yuv[0].data(), yuv[1].data(), yuv[2].data()};
  uint8_t* const out[] = {rgb[0].data(), rgb[1].data(), rgb[2].data()};
  rgb_from_deep_yuv_row(in, halved, count, by, out);
  return rgb;
}

// The coefficient table and the formula, from libswscale's yuv2rgb.c and its MMX code.
struct Text {
  int yc, yo, vr, ub, ug, vg;
};
constexpr std::array<std::array<Text, 2>, 5> kText = {
    {{{{9539, 128, 13075, 16525, -3209, -6660}, {8192, 0, 11485, 14516, -2819, -5850}}},
     {{{9539, 128, 14686, 17305, -1747, -4366}, {8192, 0, 12901, 15201, -1534, -3835}}},
     {{{9539, 128, 13752, 17545, -1535, -5328}, {8192, 0, 12080, 15412, -1348, -4680}}},
     {{{9539, 128, 14697, 17029, -2113, -4445}, {8192, 0, 12911, 14959, -1856, -3904}}},
     {{{9539, 128, 13056, 16600, -3095, -6639}, {8192, 0, 11469, 14582, -2719, -5831}}}}};

std::array<int, 3> text_rgb(const Text& t, int y, int u, int v) {
  const int luma = ((8 * y - t.yo) * t.yc) >> 16, cb = 8 * u - 1024, cr = 8 * v - 1024;
  const auto clip = [](int value) { return std::clamp(value, 0, 255); };
  return {clip(luma + (cr * t.vr >> 16)), clip(luma + (cb * t.ug >> 16) + (cr * t.vg >> 16)),
          clip(luma + (cb * t.ub >> 16))};
}

class YuvRows : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

// Random planes of 127 x 62, from an easily reproduced generator, were converted by sws_scale of
// libswscale 6.7.100 (FFmpeg 5.1.9) to RGB24, with no flags, for the matrices above; FNV-1a of the
// interleaved output: limited range, then full range; 4:2:0, then 4:2:2.
TEST_P(YuvRows, EqualLibswscalesForRandomPlanes) {
  constexpr std::array<uint64_t, 20> kWant = {
      0x5229dbc770798f31, 0xb77c96d601ab87b1, 0xf7f2a68831f15322, 0xad8f43bda9afeb03,
      0xe6ca40478c6e2604, 0xd210b3cee598afc0, 0xb4e445d5199f7e81, 0x75ada234d9665af9,
      0x2860401317924998, 0xfb471fe4810051ed, 0x92ccd4c7cbae1784, 0xb0fd143089104ea7,
      0x02bdfa565885eeea, 0x863aa510ef9de53e, 0x8ba07d04935198e2, 0x38d33df04dd2c7aa,
      0xf8d7074841a138f0, 0xedff9c433a04805d, 0x3b258009ae1da243, 0x023ff51db638aa21};
  constexpr int kWidth = 127, kHeight = 62, kHalf = 64;
  for (size_t i = 0; i < kWant.size(); ++i) {
    const int chroma_rows = i % 2 ? kHeight : kHeight / 2;
    uint32_t state = 1;
    const auto plane = [&](int width, int height) {
      Row samples(size_t(width * height) + kBehind);
      for (int k = 0; k < width * height; ++k) {
        state = state * 1664525u + 1013904223u;
        samples[size_t(k)] = static_cast<uint8_t>(state >> 24);
      }
      return samples;
    };
    const Row y = plane(kWidth, kHeight), u = plane(kHalf, chroma_rows),
              v = plane(kHalf, chroma_rows);
    const YuvCoefficients by = yuv_coefficients(kMatrices[i / 4], i / 2 % 2 == 1);
    uint64_t hash = 14695981039346656037u;
    for (int row = 0; row < kHeight; ++row) {
      const int chroma = row * chroma_rows / kHeight;
      Yuv<uint8_t> yuv = yuv_of<uint8_t>(kWidth);
      std::copy_n(y.begin() + row * kWidth, kWidth, yuv[0].begin());
      std::copy_n(u.begin() + chroma * kHalf, kHalf, yuv[1].begin());
      std::copy_n(v.begin() + chroma * kHalf, kHalf, yuv[2].begin());
      const Rgb rgb = converted(yuv, true, kWidth, by);
      for (size_t x = 0; x < kWidth; ++x) {
        for (const Row& channel : rgb) hash = (hash ^ channel[x]) * 1099511628211u;
      }
    }
    EXPECT_EQ(hash, kWant[i]) << "matrix " << i / 4 << ", full " << i / 2 % 2
                              << ", 4:2:" << (i % 2 ? 2 : 0);
  }
}

TEST_P(YuvRows, FollowTheFormulaForEveryPairOfChromaSamples) {
  constexpr int kCount = 512;  // every v, two columns each
  for (size_t m = 0; m < kMatrices.size(); ++m) {
    for (const bool full : {false, true}) {
      const YuvCoefficients by = yuv_coefficients(kMatrices[m], full);
      Yuv<uint8_t> yuv = yuv_of<uint8_t>(kCount);
      for (int u = 0; u < 256; ++u) {
        for (int i = 0; i < kCount; ++i) {
          yuv[0][size_t(i)] = static_cast<uint8_t>(i * 37 + u * 11);
          yuv[1][size_t(i)] = static_cast<uint8_t>(u);
          yuv[2][size_t(i)] = static_cast<uint8_t>(i);
        }
        for (const bool halved : {false, true}) {
          const Rgb rgb = converted(yuv, halved, kCount, by);
          for (int i = 0; i < kCount; ++i) {
            const size_t at = size_t(i), chroma = halved ? at / 2 : at;
            const auto want = text_rgb(kText[m][full], yuv[0][at], u, yuv[2][chroma]);
            for (size_t c = 0; c < 3; ++c) {
              ASSERT_EQ(rgb[c][at], want[c]) << m << full << halved << " u " << u << " at " << i;
            }
          }
        }
      }
    }
  }
}

TEST_P(YuvRows, OfEveryLengthAreComplete) {
  std::mt19937 engine(3);
  const YuvCoefficients by = yuv_coefficients(YuvMatrix::kBT709, false);
  const DeepYuvCoefficients deep_by = deep_yuv_coefficients(YuvMatrix::kBT709, false, 10);
  constexpr int kMax = 200;
  Yuv<uint8_t> yuv = yuv_of<uint8_t>(kMax);
  Yuv<uint16_t> deep = yuv_of<uint16_t>(kMax);
  for (size_t p = 0; p < 3; ++p) {
    for (uint8_t& sample : yuv[p]) sample = static_cast<uint8_t>(engine());
    for (uint16_t& sample : deep[p]) sample = static_cast<uint16_t>(engine() % 1024);
  }
  for (const bool halved : {false, true}) {
    const Rgb all = converted(yuv, halved, kMax, by);
    const Rgb deep_all = converted(deep, halved, kMax, deep_by);
    for (int count = 1; count <= kMax; ++count) {
      const Rgb part = converted(yuv, halved, count, by);
      const Rgb deep_part = converted(deep, halved, count, deep_by);
      for (size_t c = 0; c < 3; ++c) {
        ASSERT_TRUE(std::equal(all[c].begin(), all[c].begin() + count, part[c].begin())) << count;
        ASSERT_TRUE(
            std::equal(deep_all[c].begin(), deep_all[c].begin() + count, deep_part[c].begin()))
            << count;
      }
    }
  }
}

// The standard's matrix in float64; its coefficients are multiples of 2^-21.
std::array<double, 3> standard_rgb(YuvMatrix matrix, bool full, int bits, int y, int u, int v,
                                   bool rounded_coefficients) {
  constexpr double kRed[] = {0.299, 0.2126, 0.2627, 0.212, 0.3};
  constexpr double kBlue[] = {0.114, 0.0722, 0.0593, 0.087, 0.11};
  const double kr = kRed[int(matrix)], kb = kBlue[int(matrix)], kg = 1 - kr - kb;
  const double step = std::pow(2.0, bits - 8), most = std::pow(2.0, bits) - 1;
  const double luma_size = full ? most : 219 * step, chroma_size = full ? most : 224 * step;
  const auto times = [&](double sample, double factor) {
    const double coefficient = 255 * factor;
    const double kept = std::round(coefficient * 2097152) / 2097152;
    return sample * (rounded_coefficients ? kept : coefficient);
  };
  const double luma = times(y - (full ? 0 : 16 * step), 1 / luma_size);
  const double cb = u - 128 * step, cr = v - 128 * step;
  return {luma + times(cr, 2 * (1 - kr) / chroma_size),
          luma + times(cb, -2 * (1 - kb) * kb / kg / chroma_size) +
              times(cr, -2 * (1 - kr) * kr / kg / chroma_size),
          luma + times(cb, 2 * (1 - kb) / chroma_size)};
}

TEST_P(YuvRows, OfMoreThanEightBitsFollowTheStandardsMatrix) {
  std::mt19937 engine(4);
  constexpr int kCount = 20000;
  for (const YuvMatrix matrix : kMatrices) {
    for (const bool full : {false, true}) {
      for (const int bits : {9, 10, 12, 16}) {
        Yuv<uint16_t> yuv = yuv_of<uint16_t>(kCount);
        for (auto& row : yuv) {
          for (uint16_t& sample : row) sample = static_cast<uint16_t>(engine() >> (32 - bits));
        }
        const DeepYuvCoefficients by = deep_yuv_coefficients(matrix, full, bits);
        for (const bool halved : {false, true}) {
          const Rgb rgb = converted(yuv, halved, kCount, by);
          for (int i = 0; i < kCount; ++i) {
            const size_t at = size_t(i), chroma = halved ? at / 2 : at;
            const int y = yuv[0][at], u = yuv[1][chroma], v = yuv[2][chroma];
            const auto want = standard_rgb(matrix, full, bits, y, u, v, true);
            const auto ideal = standard_rgb(matrix, full, bits, y, u, v, false);
            for (size_t c = 0; c < 3; ++c) {
              ASSERT_EQ(rgb[c][at], std::clamp(std::floor(want[c] + 0.5), 0.0, 255.0))
                  << bits << full << halved << " of " << y << ", " << u << ", " << v;
              // Tolerance for the rounded coefficients: 3 times 2^-22, each times 2^bits.
              ASSERT_LE(std::abs(want[c] - ideal[c]), 3 * std::ldexp(1, bits - 22));
            }
          }
        }
      }
    }
  }
}

TEST_P(YuvRows, BlackGrayAndWhiteAreGray) {
  for (const YuvMatrix matrix : kMatrices) {
    for (const int bits : {10, 12}) {
      Yuv<uint16_t> yuv = yuv_of<uint16_t>(3);
      const int step = 1 << (bits - 8);
      yuv[0] = {static_cast<uint16_t>(16 * step), static_cast<uint16_t>(126 * step),
                static_cast<uint16_t>(235 * step)};
      for (auto& row : yuv) row.resize(3 + kBehind);
      for (int p = 1; p < 3; ++p) std::fill_n(yuv[size_t(p)].begin(), 3, uint16_t(128 * step));
      const Rgb rgb = converted(yuv, false, 3, deep_yuv_coefficients(matrix, false, bits));
      for (const Row& channel : rgb) {
        EXPECT_EQ(channel[0], 0);
        EXPECT_EQ(channel[1], 128);
        EXPECT_EQ(channel[2], 255);
      }
    }
  }
}

// Samples that exceed their bit depth: any bytes, but the same on every SIMD level.
TEST(DeepYuvRows, OfOutOfRangeSamplesAreEqualAtAllSimdLevels) {
  Yuv<uint16_t> yuv = yuv_of<uint16_t>(100);
  std::mt19937 engine(5);
  for (auto& row : yuv) {
    for (uint16_t& sample : row) sample = static_cast<uint16_t>(engine());
  }
  const DeepYuvCoefficients by = deep_yuv_coefficients(YuvMatrix::kBT601, false, 9);
  for (const bool halved : {false, true}) {
    set_simd_level(SimdLevel::kScalar);
    const Rgb want = converted(yuv, halved, 100, by);
    for (const SimdLevel level : available_levels()) {
      set_simd_level(level);
      const Rgb got = converted(yuv, halved, 100, by);
      for (size_t c = 0; c < 3; ++c) {
        EXPECT_TRUE(std::equal(want[c].begin(), want[c].begin() + 100, got[c].begin()));
      }
    }
  }
}

TEST(DeepRows, AreRoundedToTheNearestByte) {
  for (const int bits : {9, 10, 12, 16}) {
    const int most = (1 << bits) - 1;
    WideRow in(size_t(most) + 1);
    for (int i = 0; i <= most; ++i) in[size_t(i)] = static_cast<uint16_t>(i);
    Row out(in.size());
    bytes_from_deep_row(in.data(), bits, most + 1, out.data());
    for (int i = 0; i <= most; ++i) {
      ASSERT_EQ(out[size_t(i)], std::floor(i * 255.0 / most + 0.5)) << i << " of " << bits;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, YuvRows, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
