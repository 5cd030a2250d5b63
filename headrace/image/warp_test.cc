// SPDX-License-Identifier: Apache-2.0
// Every SIMD level gives the same result for every warp; tests/test_warps.py compares them with the
// libraries.
#include "headrace/image/warp.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "headrace/image/render.h"
#include "headrace/image/torchvision_warps.h"
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

std::vector<uint8_t> bytes_at(SimdLevel level, const std::shared_ptr<const Picture>& picture,
                              const Warp& warp, std::optional<Window> part = {}) {
  set_simd_level(level);
  Recipe recipe(std::make_shared<const WarpedPicture>(picture, warp));
  if (part) (void)recipe.crop(*part);
  Renderer renderer;
  EXPECT_TRUE(renderer.materialize(recipe));
  set_simd_level(available_levels().back());
  const Buffer& pixels = recipe.pixels()->pixels;
  return {pixels.data(), pixels.data() + pixels.size()};
}

Window random_part(Size size, std::mt19937& random) {
  const int x = int(random() % unsigned(size.width)), y = int(random() % unsigned(size.height));
  return {x, y, 1 + int(random() % unsigned(size.width - x)),
          1 + int(random() % unsigned(size.height - y))};
}

std::vector<uint8_t> cut(const std::vector<uint8_t>& planes, int channels, Size size,
                         const Window& part) {
  std::vector<uint8_t> out;
  for (int row = 0; row < channels * size.height; ++row) {
    const int y = row % size.height;
    if (y < part.y || y >= part.y + part.height) continue;
    const auto from = planes.begin() + ptrdiff_t{row} * size.width + part.x;
    out.insert(out.end(), from, from + part.width);
  }
  return out;
}

TEST(Warped, IsTheSameAtEverySimdLevelAndInParts) {
  std::mt19937 random(3);
  for (uint32_t seed = 0; seed < 150; ++seed) {
    const Size size{1 + int(random() % 40), 1 + int(random() % 70)};
    const int channels = 1 + int(seed % 4);
    const auto picture = std::make_shared<const Picture>(noise(channels, size, seed));
    const auto field = std::make_shared<const WarpField>(displacements(size, seed));
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
        warps.push_back({.map = Warp::Map::kField, .style = style, .to = size, .field = field});
        for (const Warp& warp : warps) {
          const auto wanted = bytes_at(SimdLevel::kScalar, picture, warp);
          const Window part = random_part(warp.to, random);
          const auto wanted_part = cut(wanted, channels, warp.to, part);
          for (const SimdLevel level : available_levels()) {
            EXPECT_EQ(bytes_at(level, picture, warp), wanted) << name_of(level) << ", " << seed;
            EXPECT_EQ(bytes_at(level, picture, warp, part), wanted_part) << name_of(level);
          }
        }
      }
    }
  }
}

// Such warps are edits of a recipe (fields/pictures.cc), and no pass over pixels.
TEST(AffineWarp, DetectsThatItDoesNotInterpolate) {
  const Size canvas{30, 40}, square{30, 30};
  const std::optional<std::array<int, 2>> none, moved = std::array{-3, 29};
  for (const Arithmetic arithmetic : {Arithmetic::kTorch, Arithmetic::kPillow}) {
    for (const Filter filter : {Filter::kNearest, Filter::kBilinear}) {
      const WarpStyle style{.interpolation = filter, .arithmetic = arithmetic};
      EXPECT_EQ(affine_warp({.translate = {-3, 29}}, canvas, style).shift, moved);
      EXPECT_EQ(affine_warp({.translate = {-3, 30}}, canvas, style).shift, none);
      EXPECT_EQ(affine_warp({.translate = {-3.5, 2}}, canvas, style).shift, none);
      EXPECT_EQ(affine_warp({.angle = 1, .translate = {-3, 29}}, canvas, style).shift, none);
      // Only Pillow truncates an angle slightly off a full turn.
      const bool same = filter == Filter::kNearest || arithmetic == Arithmetic::kTorch;
      const auto turns = [&](double angle, Size of) {
        return affine_warp({.angle = angle}, of, style).quarter_turns;
      };
      EXPECT_EQ(turns(180, canvas), same ? std::optional(2) : std::nullopt);
      EXPECT_EQ(turns(90, square), same ? std::optional(3) : std::nullopt);
      EXPECT_EQ(turns(90, canvas), std::nullopt);
      EXPECT_EQ(turns(0, canvas), 0);
    }
  }
}

// Pillow truncates values, so tiny differences matter where they are integers: tests pictures with
// uniform areas, at positions on pixels, between pixels, and slightly off those.
TEST(Warped, TruncatesBorderlineCoordinatesLikeDoubles) {
  std::mt19937 random(7);
  for (uint32_t seed = 0; seed < 600; ++seed) {
    const Size size{1 + int(random() % 40), 1 + int(random() % 70)};
    Picture areas = noise(3, size, seed);
    for (size_t i = 0; i < areas.pixels.size(); ++i) {
      uint8_t& value = areas.pixels.data()[i];
      value = value < 128 ? 0 : value < 250 ? 255 : value;
      if (i > 0 && seed % 3 == 1 && value % 8) value = areas.pixels.data()[i - 1];
      if (seed % 3 == 2) value = i / 19 % 2 ? 255 : 0;
    }
    const auto picture = std::make_shared<const Picture>(std::move(areas));
    const auto number = [&](std::initializer_list<double> of) {
      const double hairs[] = {0, 0, 1e-16, -1e-16, 1e-13, -1e-13, 1e-9, -1e-9, 2e-7, -2e-7, 1e-5};
      return *(of.begin() + random() % of.size()) + hairs[random() % std::size(hairs)];
    };
    const double fill[] = {double(random() % 256)};
    Warp warp{.map = seed % 4 ? Warp::Map::kAffine : Warp::Map::kPerspective,
              .style = {.interpolation = Filter::kBilinear,
                        .arithmetic = Arithmetic::kPillow,
                        .fill = fill},
              .to = size};
    warp.lookup = {number({1, 1, 1, 2, 0.5, -1, -0.75, 0.3, 3.99, 7}),
                   number({0, 0, 1, -0.25}),
                   number({0, 1, -3, 0.5, 20, 1e9}),
                   number({0, 0, -1, 0.125}),
                   number({1, 1, 1, 2, 0.5, -1, 0.7}),
                   number({0, 2, -1, 0.5, 10})};
    const auto wanted = bytes_at(SimdLevel::kScalar, picture, warp);
    for (const SimdLevel level : available_levels()) {
      EXPECT_EQ(bytes_at(level, picture, warp), wanted) << name_of(level) << ", " << seed;
    }
  }
}

TEST(Warped, IsDeferredUntilTheNextStepIsKnown) {
  const auto picture = std::make_shared<const Picture>(noise(3, {9, 11}, 1));
  Recipe recipe(
      std::make_shared<const WarpedPicture>(picture, rotation_warp(20, true, {}, {9, 11}, {})));
  EXPECT_TRUE(recipe.crop({3, 2, 4, 5}));
  EXPECT_TRUE(recipe.flip_horizontal());
  EXPECT_TRUE(recipe.is_derived());
  EXPECT_EQ(recipe.size(), (Size{5, 4}));
  EXPECT_EQ(recipe.pixels(), nullptr);
}

// Files and random draws may contain anything; pixels are then black or the fill's.
TEST(Warped, ReadsNoPixelOutside) {
  const auto picture = std::make_shared<const Picture>(noise(3, {9, 11}, 1));
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
