// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/reading/read_share.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(ExpectedSize, IsUnknownBeforeTheFirstRecord) {
  ExpectedSize expected;
  EXPECT_EQ(expected.bytes(), 0u);
  expected.add(7);
  EXPECT_EQ(expected.bytes(), 7u);
}

TEST(ExpectedSize, OneHugeRecordDoesNotCount) {
  ExpectedSize expected;
  for (int i = 0; i < 100; ++i) expected.add(1000 + i % 10);
  const size_t before = expected.bytes();
  expected.add(58 << 20);
  for (int i = 0; i < 100; ++i) {
    expected.add(1000 + i % 10);
    EXPECT_LE(expected.bytes(), before + 10);
  }
}

TEST(ExpectedSize, ManyLargeRecordsCount) {
  ExpectedSize expected;
  for (int i = 0; i < 100; ++i) expected.add(i % 10 == 0 ? 50'000 : 1000);
  EXPECT_EQ(expected.bytes(), 50'000u);
}

}  // namespace
}  // namespace headrace
