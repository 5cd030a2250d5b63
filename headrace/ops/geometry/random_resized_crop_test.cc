// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "headrace/ops/geometry/random_window.h"
#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace random_resized_crop_test {

const RandomWindowParams kDefault({0.08, 1.0}, {3.0 / 4.0, 4.0 / 3.0});

// Distribution of windows by area (ten bins from 0.08 to 1 of the picture's) and by log ratio
// (eight bins from 3/4 to 4/3), as torchvision 0.29's v2.RandomResizedCrop(224).make_params drew
// them.
struct Drawn {
  Size picture;
  int draws;
  double area[10], ratio[8];
};
constexpr Drawn kTorchvision[] = {
    {{375, 500},
     400000,
     {0.13486, 0.13442, 0.13424, 0.1349, 0.13456, 0.12575, 0.09168, 0.06185, 0.03601, 0.01172},
     {0.0924, 0.10161, 0.10839, 0.11346, 0.13188, 0.1404, 0.15004, 0.16182}},
    {{1000, 200},  // so narrow that some of the draws fall back to the central window
     200000,
     {0.55512, 0.20952, 0.23536, 0, 0, 0, 0, 0, 0, 0},
     {0.37257, 0.12358, 0.11214, 0.09588, 0.09176, 0.07744, 0.06824, 0.0584}}};

int bin(double share, int bins) { return std::clamp(static_cast<int>(share * bins), 0, bins - 1); }

TEST(RandomResizedCrop, WindowsAreDistributedAsTorchvisions) {
  constexpr int kDraws = 400000;
  for (const Drawn& expected : kTorchvision) {
    double area[10] = {}, ratio[8] = {};
    for (int i = 0; i < kDraws; ++i) {
      Draws draws(0, 0, i, 1);
      const Window w = random_window(expected.picture, kDefault, draws);
      const double share =
          double(w.width) * w.height / (double(expected.picture.width) * expected.picture.height);
      const double low = std::log(3.0 / 4.0);
      area[bin((share - 0.08) / 0.92, 10)] += 1.0 / kDraws;
      ratio[bin((std::log(double(w.width) / w.height) - low) / (-2 * low), 8)] += 1.0 / kDraws;
    }
    const auto near = [&](double ours, double theirs) {
      const double sigma = std::sqrt(theirs * (1 - theirs) * (1.0 / kDraws + 1.0 / expected.draws));
      EXPECT_NEAR(ours, theirs, 4.5 * sigma + 1e-5);
    };
    for (int i = 0; i < 10; ++i) near(area[i], expected.area[i]);
    for (int i = 0; i < 8; ++i) near(ratio[i], expected.ratio[i]);
  }
}

TEST(RandomResizedCrop, WindowsAreInsideEvenTheSmallestImage) {
  for (Size picture :
       {Size{1, 1}, Size{1, 2}, Size{2, 1}, Size{1, 500}, Size{500, 1}, Size{3, 3}}) {
    for (int i = 0; i < 2000; ++i) {
      Draws draws(1, 0, i, 2);
      const Window w = random_window(picture, kDefault, draws);
      ASSERT_TRUE(w.x >= 0 && w.y >= 0 && w.width >= 1 && w.height >= 1);
      ASSERT_TRUE(w.x + w.width <= picture.width && w.y + w.height <= picture.height);
    }
  }
}

TEST(RandomResizedCrop, PositionsAreUniform) {
  const RandomWindowParams params({0.25, 0.25},
                                  {1, 1});  // always 10 x 10 of 20 x 20: 11 x 11 positions
  double x = 0, y = 0, corners = 0;
  constexpr int kDraws = 50000;
  for (int i = 0; i < kDraws; ++i) {
    Draws draws(2, 0, i, 3);
    const Window w = random_window({20, 20}, params, draws);
    ASSERT_EQ(w.width, 10);
    ASSERT_EQ(w.height, 10);
    x += w.x, y += w.y, corners += w.x % 10 == 0 && w.y % 10 == 0;
  }
  EXPECT_NEAR(x / kDraws, 5, 0.06);
  EXPECT_NEAR(y / kDraws, 5, 0.06);
  EXPECT_NEAR(corners / kDraws, 4.0 / 121, 0.0035);
}

TEST(RandomResizedCrop, FallsBackToTheCentralWindowOfAnAllowedRatio) {
  // torchvision: w = 200, h = round(200 / 0.75) = 267, and the transpose of that.
  const RandomWindowParams never_fits({4, 4}, {3.0 / 4.0, 4.0 / 3.0});
  Draws draws(0, 0, 0, 0);
  EXPECT_EQ(random_window({1000, 200}, never_fits, draws), (Window{0, 366, 200, 267}));
  EXPECT_EQ(random_window({200, 1000}, never_fits, draws), (Window{366, 0, 267, 200}));
  EXPECT_EQ(random_window({100, 120}, never_fits, draws), (Window{0, 0, 120, 100}));
}

TEST(RandomResizedCrop, ResizesTheWindowForImageAndMask) {
  const auto op = make_op("RandomResizedCrop",
                          {{"size", Ints{5, 6}}, {"interpolation", std::string("nearest")}});
  EXPECT_EQ(planned(*op, image_state()).shape, (Shape{3, 5, 6}));
  for (int64_t position = 0; position < 30; ++position) {
    TestRecord record({{coordinates(40, 30)}, {coordinates(40, 30), FieldKind::kMask}}, position);
    record.apply(*op);
    EXPECT_EQ(record.recipe().size(), (Size{5, 6}));
    EXPECT_EQ(record.grid(0), record.grid(1));
  }
}

TEST(RandomResizedCrop, EqualsACropAndThenAResize) {
  const Grid grid = recipe_test::random_grid(3, 40, 30, 6);
  const auto op = make_op("RandomResizedCrop", {{"size", int64_t{12}}});
  Draws draws(0, 0, 9, 1);
  const Window window = random_window({40, 30}, kDefault, draws);
  TestRecord record({{recipe_test::crop(grid, window)}});
  record.apply(*make_op("Resize", {{"size", Ints{12, 12}}}));
  EXPECT_EQ(applied(*op, grid, 9), record.grid());
}

TEST(RandomResizedCrop, ReversedRangesAreRejected) {
  EXPECT_EQ(refusal("RandomResizedCrop", {{"size", int64_t{4}}, {"scale", Floats{1.0, 0.5}}}),
            "HR0510 [RandomResizedCrop] scale must be (smallest, largest)");
  EXPECT_EQ(refusal("RandomResizedCrop", {{"size", int64_t{4}}, {"ratio", Floats{1.0, 0.5}}}),
            "HR0510 [RandomResizedCrop] ratio must be (smallest, largest)");
  EXPECT_EQ(refusal("RandomResizedCrop", {{"size", int64_t{4}}, {"scale", 0.5}}),
            "HR0104 [RandomResizedCrop] scale must have at least 2 values (got [0.5])");
}

}  // namespace random_resized_crop_test
}  // namespace headrace::op_test
