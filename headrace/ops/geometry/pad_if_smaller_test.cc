// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

const Grid kGrid = recipe_test::random_grid(3, 4, 5, 1);
constexpr double kBlack[] = {0, 0, 0}, kColor[] = {1, 2, 3};

TEST(PadIfSmaller, PadsOnTheRightAndAtTheBottom) {
  EXPECT_EQ(applied(*make_op("PadIfSmaller", {{"size", int64_t{7}}}), kGrid),
            with_borders(kGrid, 0, 0, 2, 3, kBlack));
  const auto op = make_op("PadIfSmaller", {{"size", Ints{6, 2}}, {"fill", Ints{1, 2, 3}}});
  EXPECT_EQ(applied(*op, kGrid), with_borders(kGrid, 0, 0, 0, 2, kColor));
}

TEST(PadIfSmaller, LargeEnoughImagesAreUnchanged) {
  EXPECT_EQ(applied(*make_op("PadIfSmaller", {{"size", Ints{4, 5}}}), kGrid), kGrid);
  EXPECT_EQ(applied(*make_op("PadIfSmaller", {{"size", int64_t{1}}}), kGrid), kGrid);
}

TEST(PadIfSmaller, ThePlanHasTheMinimumSize) {
  const auto op = make_op("PadIfSmaller", {{"size", Ints{9, 4}}});
  EXPECT_EQ(planned(*op, image_state({3, 4, 5})).shape, (Shape{3, 9, 5}));
  EXPECT_EQ(planned(*op, image_state({3, -1, 3})).shape, (Shape{3, -1, 4}));
}

}  // namespace
}  // namespace headrace::op_test
