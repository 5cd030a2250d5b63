// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "headrace/kernels/dispatch.h"
#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

TEST(TemplateBrighten, AddsToEachSampleAtEveryLevel) {
  const Grid grid = recipe_test::random_grid(3, 5, 7, 1);
  const Grid brighter = recipe_test::make_grid(
      3, 5, 7, [&](int c, int y, int x) { return std::min(grid.at(c, y, x) + 40, 255.0); });
  for (const SimdLevel level : available_levels()) {
    set_simd_level(level);
    EXPECT_EQ(applied(*make_op("TemplateBrighten"), grid), brighter) << name_of(level);
  }
}

}  // namespace
}  // namespace headrace::op_test
