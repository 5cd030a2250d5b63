// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/filters/filter_rows.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace {
namespace {

class MeanRows : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

// Every possible sum, for every number of rows.
TEST_P(MeanRows, AreRoundedToNearestWithTiesToEven) {
  for (int n = 1; n <= 127; ++n) {
    const int count = 255 * n + 1;
    std::vector<std::vector<uint8_t>> rows(size_t(n), std::vector<uint8_t>(size_t(count) + 63));
    std::vector<const uint8_t*> pointers;
    for (int r = 0; r < n; ++r) {
      for (int sum = 0; sum < count; ++sum) {
        rows[size_t(r)][size_t(sum)] = static_cast<uint8_t>(sum / n + (r < sum % n));
      }
      pointers.push_back(rows[size_t(r)].data());
    }
    std::vector<uint8_t> out(size_t(count) + 63);
    mean_row(pointers.data(), n, count, out.data());
    for (int sum = 0; sum < count; ++sum) {
      const int rest = 2 * (sum % n), floor = sum / n;
      const int wanted = rest > n || (rest == n && floor % 2) ? floor + 1 : floor;
      ASSERT_EQ(out[size_t(sum)], wanted) << sum << " / " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, MeanRows, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
