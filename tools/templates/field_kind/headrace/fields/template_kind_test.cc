// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/fields/field_test_values.h"

namespace headrace::field_test {
namespace {

TEST(TemplateDirections, FollowFlips) {
  FieldValue value = value_of<float>(FieldKind::kTemplateDirections, {0, 30, 90}, {3});
  ASSERT_TRUE(follow(value, Geometry().flip_horizontal().crop({1, 1, 5, 5}), {40, 50}));
  EXPECT_EQ(numbers_of<float>(value), (std::vector<float>{180, 150, 90}));
  EXPECT_EQ(find_kind("template_directions")->kind, FieldKind::kTemplateDirections);
}

}  // namespace
}  // namespace headrace::field_test
