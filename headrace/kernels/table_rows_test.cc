// SPDX-License-Identifier: Apache-2.0
// Every level against the definition.
#include "headrace/kernels/table_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

constexpr int kBeyond = 63;  // what kernels may touch past a row

class TableRows : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

TEST_P(TableRows, EveryValueOfManyTablesInRowsOfEveryLength) {
  std::mt19937 random(3);
  for (int count = 0; count <= 300; ++count) {
    uint8_t table[256];
    for (uint8_t& value : table) value = static_cast<uint8_t>(random());
    std::vector<uint8_t> in(count + kBeyond), out(count + kBeyond);
    for (uint8_t& sample : in) sample = static_cast<uint8_t>(random());
    for (int i = 0; i < std::min(count, 256); ++i) in[i] = static_cast<uint8_t>(i + count);
    look_up_row(table, in.data(), count, out.data());
    for (int i = 0; i < count; ++i) ASSERT_EQ(out[i], table[in[i]]) << count << ", " << i;
  }
}

TEST_P(TableRows, InPlace) {
  uint8_t table[256], row[256 + kBeyond];
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(255 - i);
  for (int i = 0; i < 256; ++i) row[i] = static_cast<uint8_t>(i * 7);
  look_up_row(table, row, 256, row);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(row[i], 255 - static_cast<uint8_t>(i * 7));
}

std::string level_name(const testing::TestParamInfo<SimdLevel>& info) {
  return std::string(name_of(info.param));
}
INSTANTIATE_TEST_SUITE_P(Levels, TableRows, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
