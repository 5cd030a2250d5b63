// SPDX-License-Identifier: Apache-2.0
// The rules of image/recipe.h, one by one: rendering a recipe equals executing its steps one by one
// on pixels, and geometry equals plain loops over pixels.
#include "headrace/image/recipe.h"

#include <gtest/gtest.h>

#include <random>

#include "headrace/image/recipe_test_images.h"
#include "headrace/image/render_task.h"

namespace headrace {
namespace {

using recipe_test::expect_equal_to_step_by_step;
using recipe_test::fused;
using recipe_test::Grid;
using recipe_test::random_grid;
using recipe_test::recipe_of;
using recipe_test::render;
using recipe_test::Step;
using recipe_test::step_by_step;

constexpr double kRed[] = {200, 10, 30};
constexpr double kBlack[] = {0, 0, 0};

Step crop(Window window) {
  return [=](Recipe& recipe) { return recipe.crop(window); };
}
Step resize(int height, int width, Filter filter = Filter::kBilinear) {
  return [=](Recipe& recipe) { return recipe.resize({height, width}, filter); };
}
Step pad(int left, int top, int right, int bottom, std::span<const double> fill) {
  return [=](Recipe& recipe) { return recipe.pad(left, top, right, bottom, fill); };
}
Step to_float() {
  return [](Recipe& recipe) {
    return recipe.map({MapStep::Kind::kConvert, DType::kFloat32, true, {}, {}});
  };
}
Step normalize() {
  return [](Recipe& recipe) {
    return recipe.map({MapStep::Kind::kNormalize,
                       DType::kFloat32,
                       false,
                       {0.4f, 0.5f, 0.6f},
                       {0.2f, 0.3f, 0.1f}});
  };
}
const Step kFlipX = [](Recipe& recipe) { return recipe.flip_horizontal(); };
const Step kFlipY = [](Recipe& recipe) { return recipe.flip_vertical(); };
const Step kTranspose = [](Recipe& recipe) { return recipe.transpose(); };

TEST(Recipe, ANewRecipeIsTheUnchangedImage) {
  const Grid grid = random_grid(3, 5, 7, 1);
  const Recipe recipe = recipe_of(grid);
  EXPECT_EQ(recipe.size(), (Size{5, 7}));
  EXPECT_EQ(recipe.channels(), 3);
  EXPECT_EQ(recipe.dtype(), DType::kUInt8);
  EXPECT_NE(recipe.pixels(), nullptr);
  EXPECT_EQ(render(recipe), grid);
}

TEST(Recipe, AnySequenceOfFlipsTransposesAndCropsEqualsPlainLoops) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    Grid grid = random_grid(1 + trial % 3, 1 + random() % 12, 1 + random() % 12, trial);
    Recipe recipe = recipe_of(grid);
    for (int step = 0; step < 8; ++step) {
      switch (random() % 4) {
        case 0:
          ASSERT_TRUE(recipe.flip_horizontal());
          grid = mirror_x(grid);
          break;
        case 1:
          ASSERT_TRUE(recipe.flip_vertical());
          grid = mirror_y(grid);
          break;
        case 2:
          ASSERT_TRUE(recipe.transpose());
          grid = transposed(grid);
          break;
        default:
          const int x = random() % grid.width, y = random() % grid.height;
          const Window window{x, y, int(1 + random() % (grid.width - x)),
                              int(1 + random() % (grid.height - y))};
          ASSERT_TRUE(recipe.crop(window));
          grid = recipe_test::crop(grid, window);
      }
      ASSERT_EQ(recipe.size(), (Size{grid.height, grid.width}));
    }
    ASSERT_EQ(render(recipe), grid) << "trial " << trial;
  }
}

TEST(Recipe, PadsCropsAndFlipsEqualPlainLoops) {
  std::mt19937 random(8);
  for (int trial = 0; trial < 500; ++trial) {
    Grid grid = random_grid(3, 1 + random() % 12, 1 + random() % 12, trial);
    Recipe recipe = recipe_of(grid);
    if (trial % 2) {
      ASSERT_TRUE(recipe.transpose());
      grid = transposed(grid);
    }
    for (int step = 0; step < 12; ++step) {
      const int l = random() % 3, t = random() % 3, r = random() % 3, b = random() % 3;
      switch (random() % 4) {
        case 0:
          ASSERT_TRUE(recipe.flip_horizontal());
          grid = mirror_x(grid);
          break;
        case 1:
          ASSERT_TRUE(recipe.flip_vertical());
          grid = mirror_y(grid);
          break;
        case 2:
          ASSERT_TRUE(recipe.pad(l, t, r, b, kRed));
          grid = with_borders(grid, l, t, r, b, kRed);
          break;
        default: {
          // Any window, including one that contains only border; or all but a few rows and columns,
          // which often removes every border.
          const bool trim = random() % 2 && grid.width > 8 && grid.height > 8;
          const int x = random() % (trim ? 5 : grid.width), y = random() % (trim ? 5 : grid.height);
          const Window window{
              x, y,
              trim ? int(grid.width - x - random() % 4) : int(1 + random() % (grid.width - x)),
              trim ? int(grid.height - y - random() % 4) : int(1 + random() % (grid.height - y))};
          ASSERT_TRUE(recipe.crop(window));
          grid = recipe_test::crop(grid, window);
        }
      }
      ASSERT_EQ(recipe.size(), (Size{grid.height, grid.width}));
    }
    ASSERT_EQ(render(recipe), grid) << "trial " << trial;
  }
}

TEST(Recipe, CropBeforeAResizeMakesASeparateImage) {
  const Recipe recipe = recipe_of(random_grid(3, 40, 50, 2));
  for (Filter filter : {Filter::kNearest, Filter::kBilinear, Filter::kBicubic}) {
    expect_equal_to_step_by_step(recipe, {crop({7, 5, 21, 30}), resize(13, 17, filter)});
    expect_equal_to_step_by_step(recipe, {crop({7, 5, 3, 2}), resize(13, 17, filter)});
  }
}

TEST(Recipe, CropAfterAResizeIsASliceOfTheWholeResize) {
  const Recipe recipe = recipe_of(random_grid(3, 40, 50, 3));
  for (Filter filter : {Filter::kNearest, Filter::kBilinear, Filter::kBicubic}) {
    Recipe whole = recipe;
    ASSERT_TRUE(whole.resize({31, 23}, filter));
    Recipe part = whole;
    ASSERT_TRUE(part.crop({3, 9, 11, 14}));
    ASSERT_TRUE(part.crop({1, 2, 5, 6}));
    EXPECT_EQ(render(part), recipe_test::crop(render(whole), {4, 11, 5, 6}));
  }
}

TEST(Recipe, FlipBeforeAResizeIsNotAFlipAfterIt) {
  const Recipe recipe = recipe_of(random_grid(3, 37, 41, 4));
  for (Filter filter : {Filter::kNearest, Filter::kBilinear, Filter::kBicubic}) {
    for (const Step& flip : {kFlipX, kFlipY}) {
      expect_equal_to_step_by_step(recipe, {flip, resize(16, 19, filter)});
      expect_equal_to_step_by_step(recipe, {resize(16, 19, filter), flip});
      expect_equal_to_step_by_step(recipe,
                                   {flip, resize(16, 19, filter), flip, crop({2, 3, 9, 8})});
    }
  }
}

TEST(Recipe, OrientationsThatSwapTheAxesChooseThePassOrder) {
  const Recipe recipe = recipe_of(random_grid(3, 30, 90, 6));
  for (Filter filter : {Filter::kBilinear, Filter::kBicubic}) {
    expect_equal_to_step_by_step(recipe, {kTranspose, resize(20, 25, filter)});
    expect_equal_to_step_by_step(recipe, {kTranspose, kFlipX, resize(200, 25, filter)});
    expect_equal_to_step_by_step(recipe, {kTranspose, kFlipX, kFlipY, crop({3, 10, 20, 70}),
                                          resize(64, 64, filter), kFlipX, crop({5, 6, 40, 41})});
  }
}

TEST(Recipe, TwoResizesNeverFold) {
  Recipe recipe = recipe_of(random_grid(3, 20, 20, 7));
  ASSERT_TRUE(recipe.resize({10, 12}, Filter::kBilinear));
  const Grid before = render(recipe);
  EXPECT_FALSE(recipe.resize({5, 5}, Filter::kBilinear));
  EXPECT_EQ(render(recipe), before) << "a refused step changes nothing";
}

TEST(Recipe, ResizeToTheSameSizeIsNotAStep) {
  Recipe recipe = recipe_of(random_grid(3, 20, 20, 8));
  ASSERT_TRUE(recipe.resize({20, 20}, Filter::kBicubic));
  EXPECT_NE(recipe.pixels(), nullptr);
  ASSERT_TRUE(recipe.resize({10, 12}, Filter::kBilinear));
  ASSERT_TRUE(recipe.pad(1, 1, 1, 1, kRed));
  ASSERT_TRUE(to_float()(recipe));
  const Grid before = render(recipe);
  EXPECT_TRUE(recipe.resize({12, 14}, Filter::kNearest));
  EXPECT_EQ(render(recipe), before);
}

TEST(Recipe, ResizeDoesNotFollowAMap) {
  Recipe mapped = recipe_of(random_grid(3, 20, 20, 10));
  ASSERT_TRUE(to_float()(mapped));
  EXPECT_FALSE(mapped.resize({5, 5}, Filter::kBilinear));
  EXPECT_EQ(mapped.size(), (Size{20, 20}));
}

// Crops and flips before, between and after, compared with executing each step alone.
TEST(Recipe, ResizeOfAPaddedImageEqualsAResizeOfItsPixels) {
  std::mt19937 random(21);
  const Filter filters[] = {Filter::kNearest, Filter::kBilinear, Filter::kBicubic, Filter::kLanczos,
                            Filter::kBox};
  for (int trial = 0; trial < 600; ++trial) {
    const int height = 1 + random() % 40, width = 1 + random() % 40;
    std::vector<Step> steps;
    Size size{height, width};
    const auto maybe_flip = [&] {
      if (random() % 2) steps.push_back(kFlipX);
      if (random() % 2) steps.push_back(kFlipY);
    };
    const auto maybe_crop = [&] {
      if (random() % 2) return;
      const int x = random() % size.width, y = random() % size.height;
      const Window part{x, y, int(1 + random() % (size.width - x)),
                        int(1 + random() % (size.height - y))};
      steps.push_back(crop(part));
      size = {part.height, part.width};
    };
    if (trial % 3 == 0) {
      steps.push_back(kTranspose);
      size = {width, height};
    }
    maybe_flip();
    const int l = random() % 60, t = random() % 60, r = random() % 60, b = random() % 60;
    steps.push_back(pad(l, t, r, b, kRed));
    size = {size.height + t + b, size.width + l + r};
    maybe_flip();
    maybe_crop();
    const Size to{int(1 + random() % 50), int(1 + random() % 50)};
    steps.push_back(resize(to.height, to.width, filters[trial % 5]));
    size = to;
    maybe_crop();
    maybe_flip();
    if (random() % 2) steps.push_back(to_float());
    expect_equal_to_step_by_step(recipe_of(random_grid(1 + trial % 3, height, width, trial)),
                                 steps);
    if (testing::Test::HasFailure()) FAIL() << "trial " << trial;
  }
}

TEST(Recipe, ResizeOfAPaddedImageReadsNoPixelOfTheBorder) {
  Recipe recipe = recipe_of(random_grid(3, 20, 20, 9));
  ASSERT_TRUE(recipe.pad(4000, 2000, 0, 0, kRed));
  EXPECT_TRUE(recipe.resize({50, 50}, Filter::kBilinear));
  EXPECT_EQ(recipe.size(), (Size{50, 50}));
  EXPECT_LT(working_bytes(recipe), size_t{4} << 20) << "of 24 MB that the border had";
  EXPECT_EQ(render(recipe).at(0, 3, 3), kRed[0]);
}

TEST(Recipe, TransposeDoesNotFollowAResizeOrAPad) {
  Recipe resized = recipe_of(random_grid(3, 20, 30, 11));
  ASSERT_TRUE(resized.resize({5, 6}, Filter::kBilinear));
  EXPECT_FALSE(resized.transpose());
  Recipe padded = recipe_of(random_grid(3, 20, 30, 12));
  ASSERT_TRUE(padded.pad(1, 1, 1, 1, kRed));
  EXPECT_FALSE(padded.transpose());
  EXPECT_EQ(padded.size(), (Size{22, 32}));
}

TEST(Recipe, PadsOfEqualFillFoldAndOthersDoNot) {
  Recipe recipe = recipe_of(random_grid(3, 4, 5, 13));
  ASSERT_TRUE(recipe.pad(1, 2, 3, 4, kRed));
  ASSERT_TRUE(recipe.pad(1, 0, 0, 0, kRed));
  EXPECT_FALSE(recipe.pad(0, 1, 0, 0, kBlack));
  EXPECT_TRUE(recipe.pad(0, 0, 0, 0, kBlack)) << "no border is not a step";
  EXPECT_EQ(recipe.size(), (Size{10, 10}));
  EXPECT_EQ(render(recipe), with_borders(random_grid(3, 4, 5, 13), 2, 2, 3, 4, kRed));
}

TEST(Recipe, PadDoesNotFollowAMapAndAMapAppliesToItsFill) {
  Recipe recipe = recipe_of(random_grid(3, 4, 5, 14));
  ASSERT_TRUE(to_float()(recipe));
  EXPECT_FALSE(recipe.pad(1, 1, 1, 1, kRed));
  expect_equal_to_step_by_step(recipe_of(random_grid(3, 4, 5, 14)),
                               {pad(1, 2, 3, 4, kRed), to_float(), normalize()});
}

TEST(Recipe, ResizeAndPadMayFollowACropThatRemovesEveryBorder) {
  Recipe recipe = recipe_of(random_grid(3, 8, 9, 15));
  ASSERT_TRUE(recipe.flip_horizontal());
  ASSERT_TRUE(recipe.pad(4, 4, 4, 4, kRed));
  ASSERT_TRUE(recipe.flip_vertical());
  ASSERT_TRUE(recipe.flip_horizontal());
  ASSERT_TRUE(recipe.crop({5, 6, 6, 5}));
  const Grid padded = with_borders(mirror_x(random_grid(3, 8, 9, 15)), 4, 4, 4, 4, kRed);
  const Grid expected = recipe_test::crop(mirror_x(mirror_y(padded)), {5, 6, 6, 5});
  EXPECT_EQ(render(recipe), expected);
  EXPECT_TRUE(recipe.pad(1, 1, 1, 1, kBlack)) << "another fill: there is no border left";
  Recipe resized = recipe_of(expected);
  ASSERT_TRUE(recipe.crop({1, 1, 6, 5}));
  ASSERT_TRUE(recipe.resize({11, 4}, Filter::kBilinear));
  ASSERT_TRUE(resized.resize({11, 4}, Filter::kBilinear));
  EXPECT_EQ(render(recipe), render(resized));
}

TEST(Recipe, CropInsideTheBorderIsBorder) {
  Recipe recipe = recipe_of(random_grid(3, 8, 9, 16));
  ASSERT_TRUE(recipe.resize({6, 6}, Filter::kBicubic));
  ASSERT_TRUE(recipe.pad(5, 5, 5, 5, kRed));
  ASSERT_TRUE(recipe.crop({1, 2, 3, 14}));
  const Grid grid = render(recipe);
  EXPECT_EQ(grid, recipe_test::make_grid(3, 14, 3, [](int c, int, int) { return kRed[c]; }));
  ASSERT_TRUE(recipe.pad(1, 0, 0, 0, kRed));
  EXPECT_EQ(recipe.size(), (Size{14, 4}));
}

TEST(Recipe, CropsAndFlipsCommuteWithTheMap) {
  const Recipe recipe = recipe_of(random_grid(3, 30, 31, 17));
  expect_equal_to_step_by_step(recipe, {to_float(), normalize(), crop({3, 4, 20, 18}), kFlipX});
  expect_equal_to_step_by_step(recipe, {resize(20, 20), to_float(), crop({3, 4, 10, 8}), kFlipY});
  expect_equal_to_step_by_step(
      recipe, {pad(3, 2, 1, 0, kRed), to_float(), crop({0, 1, 20, 9}), kFlipX, normalize()});
}

TEST(Recipe, FloatImagesSupportEachStepAlone) {
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    Recipe recipe = recipe_of(random_grid(3, 12, 14, 18));
    ASSERT_TRUE(recipe.map({MapStep::Kind::kConvert, dtype, true, {}, {}}));
    const std::vector<Step> steps = {crop({1, 1, 11, 10}),
                                     kTranspose,
                                     resize(9, 8),
                                     pad(1, 2, 1, 2, std::span(kBlack)),
                                     kFlipX,
                                     kFlipY,
                                     normalize()};
    Renderer renderer;
    ASSERT_TRUE(renderer.materialize(recipe));
    EXPECT_EQ(recipe.dtype(), dtype);
    EXPECT_EQ(fused(recipe, steps, renderer), step_by_step(recipe, steps, renderer))
        << name_of(dtype);
  }
}

TEST(Recipe, EncodedImagesRenderAsTheirPixelsDo) {
  Renderer renderer;
  for (bool subsampled : {false, true}) {
    const Buffer jpeg = recipe_test::jpeg_bytes(61, 47, subsampled);
    Result<EncodedImage> opened = renderer.open(jpeg.bytes(), {});
    ASSERT_TRUE(opened) << opened.error().message();
    const Recipe recipe(*opened);
    EXPECT_EQ(recipe.size(), (Size{47, 61}));
    EXPECT_EQ(recipe.pixels(), nullptr);
    expect_equal_to_step_by_step(recipe, {crop({11, 13, 30, 29}), kFlipX, resize(20, 22)});
    expect_equal_to_step_by_step(
        recipe, {kTranspose, kFlipY, crop({11, 13, 30, 40}), resize(64, 31), crop({2, 3, 20, 41}),
                 kFlipX, to_float(), normalize()});
    expect_equal_to_step_by_step(recipe, {pad(8, 8, 8, 8, kRed), crop({3, 50, 32, 13}), kFlipX});
  }
}

TEST(Recipe, SourceStaysTheSameUntilPixelsAreMade) {
  Recipe recipe = recipe_of(random_grid(3, 8, 9, 19));
  const Recipe start = recipe;
  ASSERT_TRUE(recipe.resize({4, 4}, Filter::kBilinear));
  EXPECT_TRUE(recipe.same_source(start));
  Renderer renderer;
  ASSERT_TRUE(renderer.materialize(recipe));
  EXPECT_FALSE(recipe.same_source(start));
  EXPECT_NE(recipe.pixels(), nullptr);
}

}  // namespace
}  // namespace headrace
