// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

TEST(RandomCrop, IsAWindowOfTheImage) {
  const auto op = make_op("RandomCrop", {{"size", Ints{3, 4}}});
  const Grid grid = coordinates(9, 8);
  for (int64_t position = 0; position < 50; ++position) {
    const Grid out = applied(*op, grid, position);
    const Window window{int(out.at(0, 0, 0)), int(out.at(1, 0, 0)), 4, 3};
    EXPECT_EQ(out, recipe_test::crop(grid, window));
  }
}

TEST(RandomCrop, EveryPositionIsEquallyProbable) {
  constexpr int kRecords = 20000, kPlaces = 5 * 3;
  const auto op = make_op("RandomCrop", {{"size", Ints{2, 3}}});
  const Grid grid = coordinates(4, 7);
  std::vector<int> count(kPlaces);
  for (int64_t position = 0; position < kRecords; ++position) {
    const Grid out = applied(*op, grid, position);
    ++count[int(out.at(1, 0, 0)) * 5 + int(out.at(0, 0, 0))];
  }
  const double expected = double(kRecords) / kPlaces;
  for (int n : count) EXPECT_NEAR(n, expected, 4.5 * std::sqrt(expected));
}

TEST(RandomCrop, ImageAndMaskGetTheSameWindow) {
  const auto op = make_op("RandomCrop", {{"size", int64_t{3}}, {"padding", int64_t{2}}});
  for (int64_t position = 0; position < 50; ++position) {
    TestRecord record({{coordinates(6, 6)}, {coordinates(6, 6), FieldKind::kMask}}, position);
    record.apply(*op);
    EXPECT_EQ(record.grid(0), record.grid(1));
  }
}

TEST(RandomCrop, ImagesOfDifferentSizesMakeABadRecord) {
  TestRecord record({{coordinates(6, 6)}, {coordinates(6, 7), FieldKind::kMask}});
  Result<void> done = record.try_apply(*make_op("RandomCrop", {{"size", int64_t{3}}}));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code->id, "HR0501");
  EXPECT_EQ(done.error().what, "one is 6 x 6 (height x width), another is 6 x 7");
}

TEST(RandomCrop, PaddingComesBeforeTheCrop) {
  const Grid grid = recipe_test::random_grid(3, 4, 4, 5);
  const double fill[] = {9, 9, 9};
  const auto op = make_op(
      "RandomCrop", {{"size", Ints{10, 8}}, {"padding", Ints{1, 2, 3, 4}}, {"fill", int64_t{9}}});
  EXPECT_EQ(applied(*op, grid), with_borders(grid, 1, 2, 3, 4, fill));
}

TEST(RandomCrop, PadIfNeededGrowsOnBothSides) {
  // Like torchvision: pads each side by the missing pixels, then takes a window of that.
  const Grid grid = coordinates(4, 20);
  const auto op = make_op("RandomCrop", {{"size", Ints{6, 6}}, {"pad_if_needed", true}});
  std::vector<int> tops(3);
  for (int64_t position = 0; position < 300; ++position) {
    const Grid out = applied(*op, grid, position);
    int top = 0;  // first row that is not border
    while (top < 6 && out.at(1, top + 1, 3) == 0) ++top;
    ASSERT_LT(top, 3);
    ++tops[top];
  }
  for (int n : tops) EXPECT_GT(n, 50);
}

TEST(RandomCrop, ATooSmallImageMakesABadRecord) {
  TestRecord record({{coordinates(6, 2)}});
  Result<void> done = record.try_apply(*make_op("RandomCrop", {{"size", int64_t{3}}}));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code->id, "HR0502");
  EXPECT_EQ(done.error().what,
            "[RandomCrop] the crop is 3 x 3 (height x width), but the image is 6 x 2");
}

TEST(RandomCrop, AnImageKnownToBeTooSmallIsRejectedAtPlanTime) {
  EXPECT_EQ(plan_refusal("RandomCrop", {{"size", int64_t{40}}}, image_state({3, 32, 32})),
            "HR0510 [RandomCrop] the crop is larger than \"image\" is at this point | "
            "pad_if_needed=True pads such images; Resize before the crop makes them larger");
  EXPECT_EQ(plan_refusal("RandomCrop", {{"size", int64_t{40}}, {"padding", int64_t{4}}},
                         image_state({3, 32, 32})),
            "accepted");
}

}  // namespace
}  // namespace headrace::op_test
