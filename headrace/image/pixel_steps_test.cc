// SPDX-License-Identifier: Apache-2.0
// Pixel steps in a recipe: their allowed order, and that fused and step-by-step execution agree.
#include "headrace/image/pixel_steps.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "headrace/image/recipe_test_images.h"

namespace headrace {
namespace pixel_steps_test {

using recipe_test::expect_equal_to_step_by_step;
using recipe_test::Grid;
using recipe_test::random_grid;
using recipe_test::recipe_of;
using recipe_test::render;
using recipe_test::Step;

// x -> (x * values[0] + values[1]) mod 256: no two of them commute.
void affine_bytes(const PixelStep& step, const uint8_t* const in[], int channels, int count,
                  uint8_t* const out[]) {
  for (int c = 0; c < channels; ++c) {
    for (int i = 0; i < count; ++i) {
      out[c][i] = static_cast<uint8_t>(in[c][i] * int(step.values[0]) + int(step.values[1]));
    }
  }
}
void affine_floats(const PixelStep& step, const float* const in[], int channels, int count,
                   float* const out[]) {
  for (int c = 0; c < channels; ++c) {
    for (int i = 0; i < count; ++i) out[c][i] = in[c][i] * step.values[0] + step.values[1];
  }
}
constexpr PixelFunction kAffine{[](const PixelStep&, int in) { return in; }, affine_bytes,
                                affine_floats};

// The first channel alone.
constexpr PixelFunction kFirst{[](const PixelStep&, int) { return 1; },
                               [](const PixelStep&, const uint8_t* const in[], int, int count,
                                  uint8_t* const out[]) { std::copy_n(in[0], count, out[0]); },
                               [](const PixelStep&, const float* const in[], int, int count,
                                  float* const out[]) { std::copy_n(in[0], count, out[0]); }};

Step affine(float times, float plus) {
  return [=](Recipe& recipe) { return recipe.compute({&kAffine, {times, plus}}); };
}
Step first() {
  return [](Recipe& recipe) { return recipe.compute({&kFirst, {}}); };
}
Step to_float() {
  return [](Recipe& recipe) {
    return recipe.map({MapStep::Kind::kConvert, DType::kFloat32, true, {}, {}});
  };
}
Step normalize() {
  return [](Recipe& recipe) {
    return recipe.map({MapStep::Kind::kNormalize, DType::kFloat32, false, {0.5f}, {0.25f}});
  };
}
constexpr double kRed[] = {200, 1, 2};
Step padded() {
  return [](Recipe& recipe) { return recipe.pad(2, 1, 0, 3, kRed); };
}
Step cropped() {
  return [](Recipe& recipe) { return recipe.crop({1, 1, 9, 8}); };
}
Step resized() {
  return [](Recipe& recipe) { return recipe.resize({17, 11}, Filter::kBilinear); };
}
Step flipped() {
  return [](Recipe& recipe) { return recipe.flip_horizontal(); };
}

TEST(PixelSteps, AreAppliedInOrderToEachSample) {
  const Grid grid = random_grid(3, 7, 70, 1);
  Recipe recipe = recipe_of(grid);
  ASSERT_TRUE(affine(3, 1)(recipe));
  ASSERT_TRUE(affine(1, 7)(recipe));
  EXPECT_EQ(recipe.pixels(), nullptr);
  const Grid expected = recipe_test::make_grid(
      3, 7, 70, [&](int c, int y, int x) { return (int(grid.at(c, y, x)) * 3 + 8) % 256; });
  EXPECT_EQ(render(recipe), expected);
}

TEST(PixelSteps, FuseWithGeometryAroundThemAndAMapAfterThem) {
  const Recipe recipe = recipe_of(random_grid(3, 23, 29, 2));
  expect_equal_to_step_by_step(recipe, {affine(3, 1), flipped(), cropped(), affine(1, 9)});
  expect_equal_to_step_by_step(recipe, {resized(), affine(3, 1), flipped(), cropped(), to_float()});
  expect_equal_to_step_by_step(
      recipe, {cropped(), resized(), padded(), flipped(), affine(3, 1), to_float(), normalize()});
}

TEST(PixelSteps, MayChangeTheChannels) {
  Recipe recipe = recipe_of(random_grid(3, 9, 11, 3));
  ASSERT_TRUE(first()(recipe));
  EXPECT_EQ(recipe.channels(), 1);
  const Recipe fresh = recipe_of(random_grid(3, 23, 29, 4));
  expect_equal_to_step_by_step(fresh, {resized(), padded(), affine(3, 1), first(), to_float()});
  expect_equal_to_step_by_step(fresh, {padded(), cropped(), first(), flipped()});
}

TEST(PixelSteps, AreNotFollowedByAResize) {
  Recipe recipe = recipe_of(random_grid(3, 20, 20, 5));
  ASSERT_TRUE(affine(3, 1)(recipe));
  EXPECT_FALSE(resized()(recipe));
  EXPECT_EQ(recipe.size(), (Size{20, 20}));
}

TEST(PixelSteps, ChangeExistingBordersButNotLaterOnes) {
  const Recipe fresh = recipe_of(random_grid(3, 23, 29, 5));
  expect_equal_to_step_by_step(fresh, {affine(3, 1), padded(), cropped(), flipped(), to_float()});
  expect_equal_to_step_by_step(fresh, {padded(), affine(3, 1), padded(), affine(1, 9), to_float()});
  expect_equal_to_step_by_step(fresh, {affine(3, 1), padded(), resized(), affine(2, 1), padded()});
  expect_equal_to_step_by_step(fresh, {padded(), affine(3, 1), padded(), first(), to_float()});
}

TEST(PixelSteps, DoNotFollowAMapOrAnErasedRectangle) {
  Recipe mapped = recipe_of(random_grid(3, 20, 20, 6));
  ASSERT_TRUE(to_float()(mapped));
  EXPECT_FALSE(affine(3, 1)(mapped));
  Recipe erased = recipe_of(random_grid(3, 20, 20, 7));
  ASSERT_TRUE(erased.erase({.window = {1, 1, 2, 2}, .values = {200, 1, 2}}));
  EXPECT_FALSE(affine(3, 1)(erased));
  const Recipe recipe = recipe_of(random_grid(3, 20, 20, 8));
  const Step erase = [](Recipe& recipe) {
    return recipe.erase({.window = {1, 1, 9, 2}, .values = {200, 1, 2}});
  };
  expect_equal_to_step_by_step(recipe, {affine(3, 1), erase, flipped(), cropped()});
}

TEST(PixelSteps, TheirNumberIsLimited) {
  Recipe recipe = recipe_of(random_grid(3, 20, 20, 9));
  for (int i = 0; i < PixelSteps::kMax; ++i) ASSERT_TRUE(affine(1, 1)(recipe));
  EXPECT_FALSE(affine(1, 1)(recipe));
}

TEST(PixelSteps, ApplyToFloatImagesToo) {
  Renderer renderer;
  Recipe recipe = recipe_of(random_grid(3, 20, 20, 10));
  ASSERT_TRUE(to_float()(recipe));
  ASSERT_TRUE(renderer.materialize(recipe));
  expect_equal_to_step_by_step(recipe, {resized(), padded(), affine(3, 0.3f), affine(0.1f, 1),
                                        flipped(), cropped(), first(), to_float()});
}

TEST(PixelSteps, DoNotReadOtherRows) {  // widths around the vectors'
  for (int width : {1, 15, 16, 17, 31, 33, 63, 64, 65, 127, 200}) {
    const Grid grid = random_grid(3, 3, width, uint32_t(width));
    Recipe recipe = recipe_of(grid);
    ASSERT_TRUE(affine(5, 3)(recipe));
    const Grid expected = recipe_test::make_grid(
        3, 3, width, [&](int c, int y, int x) { return (int(grid.at(c, y, x)) * 5 + 3) % 256; });
    EXPECT_EQ(render(recipe), expected) << width;
  }
}

TEST(Tables, TwoInARowAreMerged) {
  ColorTable first, second;
  for (int c = 0; c < 3; ++c) {
    for (int v = 0; v < 256; ++v) {
      first.of[size_t(c)][size_t(v)] = static_cast<uint8_t>(v * 3 + c);
      second.of[size_t(c)][size_t(v)] = static_cast<uint8_t>(255 - v / 2);
    }
  }
  PixelSteps both, many;
  for (int i = 0; i < 2 * PixelSteps::kMax; ++i) EXPECT_TRUE(many.add(table_step(first)));
  ASSERT_TRUE(both.add(table_step(first)));
  ASSERT_TRUE(both.add(table_step(second)));
  const auto pixel = both.of_pixel({10, 20, 30, 0}, DType::kUInt8, 3);
  EXPECT_EQ(pixel[0], 255 - 30 / 2);
  EXPECT_EQ(pixel[1], 255 - 61 / 2);
  EXPECT_EQ(pixel[2], 255 - 92 / 2);
  EXPECT_EQ(both.of_pixel({10, 0, 0, 0}, DType::kUInt8, 1)[0], 255 - 30 / 2);
}

}  // namespace pixel_steps_test
}  // namespace headrace
