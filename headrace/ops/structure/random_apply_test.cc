// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

const std::vector<Branch> kList = {{"", {spec("Pad"), spec("Resize")}}};

TEST(RandomApply, AppliesItsListWithTheProbability) {
  EXPECT_EQ(written("RandomApply", {{"transforms", kList}, {"p", 0.25}}), "p=0.25 [Pad Resize]");
  EXPECT_EQ(written("RandomApply", {{"transforms", kList}}), "p=0.5 [Pad Resize]");
}

TEST(RandomApply, EmptyListsAndInvalidProbabilitiesAreRejected) {
  const auto call = [](const Given& given) {
    return refusal([&] { written("RandomApply", given); });
  };
  EXPECT_EQ(call({{"transforms", std::vector<Branch>{{"", {}}}}}),
            "HR0104 [RandomApply] transforms must have at least 1 value (got 0)");
  EXPECT_EQ(call({{"transforms", kList}, {"p", -0.1}}),
            "HR0104 [RandomApply] p must be from 0 to 1 (got -0.1)");
}

}  // namespace
}  // namespace headrace::op_test
