// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

TEST(TemplateInvert, InvertsEachSample) {
  const Grid grid = recipe_test::random_grid(3, 5, 7, 1);
  const Grid negative =
      recipe_test::make_grid(3, 5, 7, [&](int c, int y, int x) { return 255 - grid.at(c, y, x); });
  EXPECT_EQ(applied(*make_op("TemplateInvert"), grid), negative);
}

}  // namespace
}  // namespace headrace::op_test
