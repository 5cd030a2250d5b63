// SPDX-License-Identifier: Apache-2.0
// Compares every SIMD level with the definition.
#include "headrace/kernels/color/table_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace {
namespace table_rows_test {

constexpr int kPadding = 63;  // what kernels may touch past a row

class TableRows : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

TEST_P(TableRows, AreExactForEveryValueAndRowsOfEveryLength) {
  std::mt19937 random(3);
  for (int count = 0; count <= 300; ++count) {
    uint8_t table[256];
    for (uint8_t& value : table) value = static_cast<uint8_t>(random());
    std::vector<uint8_t> in(count + kPadding), out(count + kPadding);
    for (uint8_t& sample : in) sample = static_cast<uint8_t>(random());
    for (int i = 0; i < std::min(count, 256); ++i) in[i] = static_cast<uint8_t>(i + count);
    look_up_row(table, {}, in.data(), count, out.data());
    for (int i = 0; i < count; ++i) ASSERT_EQ(out[i], table[in[i]]) << count << ", " << i;
  }
}

TEST_P(TableRows, MayBeAppliedInPlace) {
  uint8_t table[256], row[256 + kPadding];
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(255 - i);
  for (int i = 0; i < 256; ++i) row[i] = static_cast<uint8_t>(i * 7);
  look_up_row(table, {}, row, 256, row);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(row[i], 255 - static_cast<uint8_t>(i * 7));
}

using Table = std::array<uint8_t, 256>;

template <class Value>
Table table_of(Value&& value) {
  Table table;
  for (int v = 0; v < 256; ++v) table[size_t(v)] = static_cast<uint8_t>(value(v));
  return table;
}

// Checks all 256 values computed by the form; returns whether there is one.
bool matches_guess(const Table& table, const TableGuess& guess) {
  uint8_t row[256 + kPadding] = {}, out[256 + kPadding];
  for (int i = 0; i < 256; ++i) row[i] = static_cast<uint8_t>(i);
  const TableForm form = form_of(table, guess);
  look_up_row(table.data(), form, row, 256, out);
  EXPECT_TRUE(std::equal(table.begin(), table.end(), out)) << guess.slope << ", " << guess.offset;
  return form.kind != TableForm::Kind::kNone;
}

// As brightness, contrast and Pillow's autocontrast make them; the last often hits integers, from
// either side.
TEST_P(TableRows, NearlyEveryLinearTableHasAnArithmeticForm) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> factors(0, 2), means(0, 255);
  constexpr int kEach = 2000;
  int found = 0, stretches = 0;
  for (int i = 0; i < kEach; ++i) {
    const float factor = factors(random), mean = means(random), rest = 1 - factor;
    found +=
        matches_guess(table_of([&](int v) { return std::clamp(float(v) * factor, 0.0f, 255.0f); }),
                      {.slope = factor});
    found += matches_guess(table_of([&](int v) {
                             const float drawn = std::fma(mean, rest, float(v) * factor);
                             return std::clamp(drawn, 0.0f, 255.0f);
                           }),
                           {.slope = factor, .offset = double{mean} * rest});
    const int least = static_cast<int>(random() % 60), most = 255 - static_cast<int>(random() % 60);
    const double scale = 255.0 / (most - least), offset = -least * scale;
    stretches += matches_guess(
        table_of([&](int v) { return std::clamp(std::trunc(v * scale + offset), 0.0, 255.0); }),
        {.slope = scale, .offset = offset});
  }
  EXPECT_GT(found, 2 * kEach * 99 / 100);
  EXPECT_GT(stretches, kEach * 3 / 4);
}

TEST_P(TableRows, MasksAndMirroringHaveAnArithmeticForm) {
  for (int bits = 0; bits <= 8; ++bits) {
    for (int threshold = 0; threshold <= 256; ++threshold) {
      const auto mask = static_cast<uint8_t>(0xff00 >> bits);
      const Table table = table_of([&](int v) {
        const int masked = v & mask;
        return v < threshold ? masked : 255 - masked;
      });
      EXPECT_TRUE(matches_guess(table, {.mask = mask, .threshold = threshold}));
    }
  }
}

TEST_P(TableRows, AWrongGuessIsNotAccepted) {
  std::mt19937 random(7);
  const Table table = table_of([&](int) { return random(); });
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const double slope : {-1.0, 0.0, 1.0, 15.9, 16.0, 1e30, kNaN}) {
    for (const double offset : {0.0, -300.0, 1e30, kNaN}) {
      EXPECT_FALSE(matches_guess(table, {.slope = slope, .offset = offset}));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, TableRows, testing::ValuesIn(available_levels()), level_name);

}  // namespace table_rows_test
}  // namespace headrace
