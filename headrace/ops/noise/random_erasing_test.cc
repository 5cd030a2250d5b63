// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

constexpr double kMark = 255;  // a value not in the pictures

Grid dark_grid(int channels, int height, int width) {
  return recipe_test::make_grid(channels, height, width,
                                [](int c, int y, int x) { return (c * 7 + y * 3 + x) % 200; });
}

// The rectangle that was erased; empty if none was.
Window erased_in(const Grid& grid) {
  Window found{grid.width, grid.height, 0, 0};
  int right = 0, bottom = 0;
  for (int y = 0; y < grid.height; ++y) {
    for (int x = 0; x < grid.width; ++x) {
      if (grid.at(0, y, x) != kMark) continue;
      found.x = std::min(found.x, x);
      found.y = std::min(found.y, y);
      right = std::max(right, x + 1);
      bottom = std::max(bottom, y + 1);
    }
  }
  found.width = right - found.x;
  found.height = bottom - found.y;
  return right == 0 ? Window{} : found;
}

TEST(RandomErasing, SetsOnlyARectangle) {
  const auto op = make_op("RandomErasing", {{"p", 1.0}, {"value", kMark}});
  const Grid before = dark_grid(3, 20, 30);
  for (int64_t position = 0; position < 50; ++position) {
    const Grid after = applied(*op, before, position);
    const Window window = erased_in(after);
    ASSERT_GT(window.width, 0);
    Grid expected = before;
    for (int c = 0; c < 3; ++c) {
      for (int y = window.y; y < window.y + window.height; ++y) {
        for (int x = window.x; x < window.x + window.width; ++x) expected.at(c, y, x) = kMark;
      }
    }
    ASSERT_EQ(after, expected);
  }
}

TEST(RandomErasing, AcceptsAValuePerChannelInTheCurrentDType) {
  const auto op = make_op("RandomErasing", {{"p", 1.0}, {"value", Floats{0.25, -1.5, 2.0}}});
  TestRecord record({{dark_grid(3, 20, 30)}});
  record.apply(*make_op("ToDtype", {{"dtype", DType::kFloat32}, {"scale", true}}));
  const Grid before = record.grid();
  const Grid after = record.apply(*op).grid();
  int changed = 0;
  for (int y = 0; y < 20; ++y) {
    for (int x = 0; x < 30; ++x) {
      if (after.at(0, y, x) == before.at(0, y, x)) continue;
      ++changed;
      EXPECT_EQ(after.at(0, y, x), 0.25);
      EXPECT_EQ(after.at(1, y, x), -1.5);
      EXPECT_EQ(after.at(2, y, x), 2.0);
    }
  }
  EXPECT_GT(changed, 0);
}

// With any transforms after it, fused equals step by step.
TEST(RandomErasing, LaterStepsSeeTheErasedImage) {
  const auto erase = make_op("RandomErasing", {{"p", 1.0}, {"value", kMark}});
  const std::vector<std::pair<std::string, Given>> next = {
      {"RandomHorizontalFlip", {{"p", 1.0}}},
      {"RandomVerticalFlip", {{"p", 1.0}}},
      {"CenterCrop", {{"size", int64_t{9}}}},
      {"RandomCrop", {{"size", int64_t{12}}, {"padding", int64_t{3}}}},
      {"Pad", {{"padding", int64_t{2}}}},
      {"Resize", {{"size", Ints{11, 17}}}},
      {"ToDtype", {{"dtype", DType::kFloat32}, {"scale", true}}},
      {"RandomErasing", {{"p", 1.0}, {"value", 3.0}}}};
  for (int64_t position = 0; position < 200; ++position) {
    const auto& [first, given] = next[size_t(position) % next.size()];
    const auto& [second, given2] = next[size_t(position / 8) % next.size()];
    TestRecord fused({{dark_grid(3, 20, 30)}}, position),
        stepwise({{dark_grid(3, 20, 30)}}, position);
    for (const Op* op : {erase.get()}) fused.apply(*op), stepwise.apply(*op);
    for (const auto& op : {make_op(first, given), make_op(second, given2)}) {
      ASSERT_TRUE(stepwise.renderer().materialize(stepwise.recipe()));
      fused.apply(*op);
      stepwise.apply(*op);
    }
    ASSERT_EQ(fused.grid(), stepwise.grid()) << first << ", " << second;
  }
}

// Distribution of rectangles by area (ten bins of scale) and by log ratio (eight bins), and
// fraction of records without one, as torchvision 0.29's v2.RandomErasing(p=1).make_params drew
// them.
struct Drawn {
  Size picture;
  int draws;
  double none, area[10], ratio[8];
};
constexpr Drawn kTorchvision[] = {
    {{32, 32},
     200000,
     0,
     {0.10139, 0.09587, 0.10426, 0.1048, 0.09012, 0.11753, 0.09501, 0.0985, 0.09865, 0.09391},
     {0.1222, 0.12685, 0.12625, 0.10787, 0.145, 0.12321, 0.12602, 0.12261}},
    {{20, 90},  // so flat that some draws do not fit
     100000,
     4e-05,
     {0.16366, 0.15025, 0.12809, 0.11383, 0.09819, 0.08581, 0.07988, 0.07111, 0.05447, 0.05467},
     {0.19822, 0.20095, 0.18938, 0.13018, 0.1202, 0.07468, 0.05147, 0.03488}}};

int bin(double share, int bins) { return std::clamp(static_cast<int>(share * bins), 0, bins - 1); }

TEST(RandomErasing, RectanglesAreDistributedAsTorchvisions) {
  constexpr int kDraws = 60000;
  const auto op = make_op("RandomErasing", {{"p", 1.0}, {"value", kMark}});
  for (const Drawn& expected : kTorchvision) {
    const Grid picture = dark_grid(1, expected.picture.height, expected.picture.width);
    double none = 0, area[10] = {}, ratio[8] = {};
    for (int64_t position = 0; position < kDraws; ++position) {
      const Window w = erased_in(applied(*op, picture, position));
      if (w.width == 0) {
        none += 1.0 / kDraws;
        continue;
      }
      const double share =
          double(w.width) * w.height / (double(expected.picture.width) * expected.picture.height);
      const double low = std::log(0.3);
      area[bin((share - 0.02) / 0.31, 10)] += 1.0 / kDraws;
      ratio[bin((std::log(double(w.height) / w.width) - low) / (std::log(3.3) - low), 8)] +=
          1.0 / kDraws;
    }
    const auto near = [&](double ours, double theirs) {
      const double sigma = std::sqrt(theirs * (1 - theirs) * (1.0 / kDraws + 1.0 / expected.draws));
      EXPECT_NEAR(ours, theirs, 4.5 * sigma + 1e-4);
    };
    near(none, expected.none);
    for (int i = 0; i < 10; ++i) near(area[i], expected.area[i]);
    for (int i = 0; i < 8; ++i) near(ratio[i], expected.ratio[i]);
  }
}

TEST(RandomErasing, OccursWithTheRequestedProbability) {
  constexpr int kRecords = 20000;
  const auto op = make_op("RandomErasing", {{"p", 0.3}, {"value", kMark}});
  const Grid picture = dark_grid(1, 16, 16);
  int erased = 0;
  for (int64_t position = 0; position < kRecords; ++position) {
    erased += erased_in(applied(*op, picture, position)).width > 0;
  }
  EXPECT_NEAR(erased, kRecords * 0.3, 4 * std::sqrt(kRecords * 0.3 * 0.7));
}

TEST(RandomErasing, AMaskIsUnchanged) {
  const auto op = make_op("RandomErasing", {{"p", 1.0}});
  EXPECT_TRUE(op->takes(FieldKind::kImage));
  EXPECT_FALSE(op->takes(FieldKind::kMask));
}

TEST(RandomErasing, InvalidArgumentsAreRejected) {
  EXPECT_EQ(refusal("RandomErasing", {{"scale", Floats{0.5, 0.1}}}),
            "HR0510 [RandomErasing] scale must be (smallest, largest)");
  EXPECT_EQ(refusal("RandomErasing", {{"ratio", Floats{2.0, 1.0}}}),
            "HR0510 [RandomErasing] ratio must be (smallest, largest)");
  EXPECT_EQ(plan_refusal("RandomErasing", {{"value", Floats{1, 2}}}, image_state()),
            "HR0512 [RandomErasing] value must have one value, or one for each of the 3 channels "
            "of \"image\" (got 2)");
  EXPECT_EQ(plan_refusal("RandomErasing", {{"value", 0.5}}, image_state()),
            "HR0512 [RandomErasing] value must be a whole number from 0 to 255, as \"image\" is "
            "uint8 here (got 0.5)");
  EXPECT_EQ(refusal("RandomErasing", {{"value", std::string("noise")}}),
            "HR0104 [RandomErasing] value must be \"random\" (got \"noise\")");
  EXPECT_EQ(plan_refusal("RandomErasing", {{"value", std::string("random")}}, image_state()),
            "HR0510 [RandomErasing] value=\"random\" is noise of mean 0 and standard deviation 1, "
            "but \"image\" is uint8 here | put it after ToDtype and Normalize, where such noise "
            "looks like an image");
}

}  // namespace
}  // namespace headrace::op_test
