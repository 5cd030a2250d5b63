// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

TEST(Fork, AppliesToEachBranchItsOwnTransforms) {
  EXPECT_EQ(
      written("Fork", {{"field", std::string("image")},
                       {"branches", std::vector<Branch>{{"view1", {spec("Pad")}}, {"view2", {}}}}}),
      "fork image view1[Pad] view2[]");
}

TEST(Fork, RequiresABranch) {
  EXPECT_EQ(refusal([] {
              written("Fork",
                      {{"field", std::string("image")}, {"branches", std::vector<Branch>{}}});
            }),
            "HR0104 [Fork] branches must have at least 1 value (got 0)");
}

}  // namespace
}  // namespace headrace::op_test
