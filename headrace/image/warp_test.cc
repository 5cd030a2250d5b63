// SPDX-License-Identifier: Apache-2.0
// Every level makes the same of every warp; tests/test_warps.py holds them against the libraries.
#include "headrace/image/warp.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "headrace/image/affine.h"
#include "headrace/image/perspective.h"
#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

Picture noise(int channels, Size size, uint32_t seed) {
  std::mt19937 random(seed);
  Picture picture(channels, size.height, size.width, DType::kUInt8);
  for (size_t i = 0; i < picture.pixels.size(); ++i) {
    picture.pixels.data()[i] = static_cast<uint8_t>(random());
  }
  return picture;
}

WarpField displacements(Size size, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> shares(-0.3f, 0.3f);
  const size_t count = size_t(size.height) * size_t(size.width) + 16;
  WarpField field{.size = size, .x = {}, .y = {}};
  for (size_t i = 0; i < count; ++i) {
    field.x.push_back(shares(random));
    field.y.push_back(shares(random));
  }
  return field;
}

std::vector<uint8_t> bytes_at(SimdLevel level, const Picture& picture, const Warp& warp) {
  set_simd_level(level);
  const Picture out = warped(picture, warp, false);
  set_simd_level(available_levels().back());
  return {out.pixels.data(), out.pixels.data() + out.pixels.size()};
}

TEST(Warped, IsTheSameOnEveryLevel) {
  std::mt19937 random(3);
  for (uint32_t seed = 0; seed < 150; ++seed) {
    const Size size{1 + int(random() % 40), 1 + int(random() % 70)};
    const int channels = 1 + int(seed % 4);
    const Picture picture = noise(channels, size, seed);
    const WarpField field = displacements(size, seed);
    const std::vector<double> fill(random() % 2 ? size_t(channels) : 0, double(random() % 256));
    for (const Filter filter : {Filter::kNearest, Filter::kBilinear, Filter::kBicubic}) {
      for (const Arithmetic arithmetic : {Arithmetic::kTorch, Arithmetic::kPillow}) {
        const WarpStyle style{.interpolation = filter, .arithmetic = arithmetic, .fill = fill};
        std::vector<Warp> warps{
            rotation_warp(double(random() % 360) + 0.3, random() % 2, {}, size, style),
            affine_warp({.angle = 20, .translate = {3, -2}, .scale = 0.01 + random() % 300 / 99.0},
                        size, style)};
        const Corners ends{{{1, 0}, {size.width, 2}, {size.width - 2, size.height}, {0, 3}}};
        if (const auto seen = perspective_warp(ends, size, style)) warps.push_back(*seen);
        warps.push_back({.map = Warp::Map::kField, .style = style, .to = size, .field = &field});
        for (const Warp& warp : warps) {
          const auto wanted = bytes_at(SimdLevel::kScalar, picture, warp);
          for (const SimdLevel level : available_levels()) {
            EXPECT_EQ(bytes_at(level, picture, warp), wanted) << name_of(level) << ", " << seed;
          }
        }
      }
    }
  }
}

// What is read from a file or drawn may be anything; pixels are then black or the fill's.
TEST(Warped, ReadsNoPixelThatIsNotThere) {
  const Picture picture = noise(3, {9, 11}, 1);
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const double bad : {nan, inf, -inf, 1e300, -1e300, 1e19, 2147483648.0, -2147483649.0}) {
    for (const SimdLevel level : available_levels()) {
      for (const Filter filter : {Filter::kNearest, Filter::kBilinear, Filter::kBicubic}) {
        for (const Arithmetic arithmetic : {Arithmetic::kTorch, Arithmetic::kPillow}) {
          for (size_t i = 0; i < 8; ++i) {
            Warp warp{.map = i < 6 ? Warp::Map::kAffine : Warp::Map::kPerspective,
                      .style = {.interpolation = filter, .arithmetic = arithmetic},
                      .to = {7, 40},
                      .lookup = {1, 0.1, 0, 0.1, 1, 0, 0, 0}};
            warp.lookup[i] = bad;
            EXPECT_EQ(bytes_at(level, picture, warp), bytes_at(SimdLevel::kScalar, picture, warp));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace
