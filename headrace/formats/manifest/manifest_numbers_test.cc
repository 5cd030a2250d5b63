// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "headrace/formats/manifest/manifest_columns.h"

namespace headrace {
namespace {

DType dtype_of(const std::vector<std::string>& column) {
  FractionWidth width;
  for (const std::string& text : column) width.add(text, *number_in(text));
  return width.dtype();
}

TEST(ManifestNumbers, Float32IsUsedIfItDistinguishesAllValues) {
  EXPECT_EQ(dtype_of({"0.5", "-1.25", "1e-30", "16777215.5"}), DType::kFloat32);
  EXPECT_EQ(dtype_of({"12.34567", "12.34568"}), DType::kFloat32);
  EXPECT_EQ(dtype_of({"100000.125", "100000.125"}), DType::kFloat32);
  EXPECT_EQ(dtype_of({"0.12345678901234567", "0.12345678901234568"}), DType::kFloat32);  // noise
  EXPECT_EQ(dtype_of({"inf", "nan"}), DType::kFloat32);
}

TEST(ManifestNumbers, ValuesThatFloat32WouldMergeAreFloat64) {
  EXPECT_EQ(dtype_of({"0.5", "123456789.0"}), DType::kFloat64);
  EXPECT_EQ(dtype_of({"1700000000.25", "1700000010.5"}), DType::kFloat64);
  EXPECT_EQ(dtype_of({"-1.5e9"}), DType::kFloat64);
  EXPECT_EQ(dtype_of({"4567890.12", "4567890.13"}), DType::kFloat64);  // map coordinates in meters
  EXPECT_EQ(dtype_of({"86399.001", "86399.002"}), DType::kFloat64);    // milliseconds of a day
}

TEST(ManifestNumbers, IntegersOfAnySizeAreExact) {
  EXPECT_TRUE(is_whole("-123456789012345678901234567890"));
  EXPECT_FALSE(is_whole("1.0") || is_whole("") || is_whole("-") || is_whole("1e5"));
}

}  // namespace
}  // namespace headrace
