// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/number_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace headrace {
namespace {

TEST(NumberText, FloatsHaveAsManyDigitsAsTheyNeed) {
  EXPECT_EQ(shortest_text(0.099), "0.099");
  EXPECT_EQ(shortest_text(-2.0), "-2");
  EXPECT_EQ(shortest_text(1e20), "1e+20");
  EXPECT_EQ(shortest_text(0.1f), "0.1");  // not 0.10000000149011612
  EXPECT_EQ(shortest_text(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(number_from<double>(shortest_text(1.0 / 3)), 1.0 / 3);
}

TEST(NumberText, HexHasAllDigits) {
  EXPECT_EQ(hex_text(0), "0000000000000000");
  EXPECT_EQ(hex_text(255), "00000000000000ff");
  EXPECT_EQ(hex_text(0x123456789abcdef0), "123456789abcdef0");
}

TEST(NumberText, ANumberMustBeTheWholeText) {
  EXPECT_EQ(number_from<int64_t>("-42"), -42);
  EXPECT_EQ(number_from<double>("2.5e1"), 25);
  for (const char* text : {"", "-", "+1", " 1", "1 ", "1.0", "1x", "0x1", "9223372036854775808"}) {
    EXPECT_FALSE(number_from<int64_t>(text)) << text;
  }
  EXPECT_FALSE(number_from<uint64_t>("-1"));
}

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
