// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

TEST(ToImage, DoesNothing) { EXPECT_EQ(written("ToImage"), ""); }

}  // namespace
}  // namespace headrace::op_test
