// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/byte_size.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(ByteSize, IsParsedWithItsUnit) {
  EXPECT_EQ(byte_size_of_text("200GB"), 200'000'000'000u);
  EXPECT_EQ(byte_size_of_text("1.5 TiB"), 3 * (uint64_t{1} << 39));
  EXPECT_EQ(byte_size_of_text(" 64000000 "), 64'000'000u);
  EXPECT_EQ(byte_size_of_text("3 ki"), 3072u);
  EXPECT_EQ(byte_size_of_text("10m"), 10'000'000u);
  for (const char* text : {"", "GB", "-1", "10XB", "10 GBs", "nan", "inf", "1e30"}) {
    EXPECT_FALSE(byte_size_of_text(text)) << text;
  }
}

}  // namespace
}  // namespace headrace
