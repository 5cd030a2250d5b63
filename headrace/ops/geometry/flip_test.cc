// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

TEST(RandomHorizontalFlip, MirrorsLeftToRight) {
  const Grid grid = recipe_test::random_grid(3, 5, 7, 1);
  EXPECT_EQ(applied(*make_op("RandomHorizontalFlip", {{"p", 1.0}}), grid),
            recipe_test::mirror_x(grid));
  EXPECT_EQ(applied(*make_op("RandomHorizontalFlip", {{"p", 0.0}}), grid), grid);
}

TEST(RandomVerticalFlip, MirrorsTopToBottom) {
  const Grid grid = recipe_test::random_grid(3, 5, 7, 2);
  EXPECT_EQ(applied(*make_op("RandomVerticalFlip", {{"p", 1.0}}), grid),
            recipe_test::mirror_y(grid));
}

TEST(RandomFlips, ImageAndMaskAreFlippedTogether) {
  const auto op = make_op("RandomHorizontalFlip");
  const Grid image = coordinates(4, 6),
             mask = recipe_test::make_grid(1, 4, 6, [](int, int, int x) { return x; });
  for (int64_t position = 0; position < 64; ++position) {
    TestRecord record({{image}, {mask, FieldKind::kMask}}, position);
    record.apply(*op);
    EXPECT_EQ(record.grid(0).at(0, 0, 0), record.grid(1).at(0, 0, 0));
  }
}

TEST(RandomFlips, OccurWithTheRequestedProbability) {
  constexpr int kRecords = 20000;
  for (double p : {0.5, 0.2}) {
    const auto op = make_op("RandomVerticalFlip", {{"p", p}});
    const Grid column = recipe_test::make_grid(1, 2, 1, [](int, int y, int) { return y; });
    int flipped = 0;
    for (int64_t position = 0; position < kRecords; ++position) {
      flipped += applied(*op, column, position).at(0, 0, 0) == 1;
    }
    const double sigma = std::sqrt(kRecords * p * (1 - p));
    EXPECT_NEAR(flipped, kRecords * p, 4 * sigma);
  }
}

TEST(RandomFlips, ProbabilityIsChecked) {
  EXPECT_EQ(refusal("RandomHorizontalFlip", {{"p", 1.5}}),
            "HR0104 [RandomHorizontalFlip] p must be from 0 to 1 (got 1.5)");
}

TEST(RandomFlips, LabelsAreRejected) {
  EXPECT_EQ(
      plan_refusal("RandomHorizontalFlip", {}, {"label", FieldKind::kLabel, DType::kInt64, {}, {}}),
      "HR0511 \"label\" is a label field, and the transform works on images and masks");
}

}  // namespace
}  // namespace headrace::op_test
