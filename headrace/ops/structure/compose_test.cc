// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

TEST(Compose, EqualsItsList) {
  EXPECT_EQ(
      written("Compose", {{"transforms", std::vector<Branch>{{"", {spec("Pad"), spec("A")}}}}}),
      "[Pad A]");
}

}  // namespace
}  // namespace headrace::op_test
