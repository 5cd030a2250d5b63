// SPDX-License-Identifier: Apache-2.0
// Compares every SIMD level with the scalar one, which tests/test_filters.py compares with the
// definition.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "headrace/kernels/color/color_rows.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace {
namespace {

class HsvRows : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

TEST_P(HsvRows, GiveTheSameBytesAsTheScalarLevel) {
  std::mt19937 random(4);
  for (int width = 1; width < 300; ++width) {
    const size_t room = size_t(width) + 63;
    std::vector<uint8_t> in(3 * room), ours(3 * room), twin(3 * room);
    for (uint8_t& value : in) value = static_cast<uint8_t>(random() % (width % 3 ? 256 : 4));
    const HsvChange change{.hue_add = static_cast<int>(random() % 180),
                           .saturation_gain = static_cast<float>(random() % 200) / 100,
                           .saturation_add = static_cast<float>(random() % 80) - 40.5f,
                           .value_gain = static_cast<float>(random() % 200) / 100,
                           .value_add = static_cast<float>(random() % 80) - 40.5f};
    const auto run = [&](std::vector<uint8_t>& to) {
      const uint8_t* const from[] = {in.data(), in.data() + room, in.data() + 2 * room};
      uint8_t* const out[] = {to.data(), to.data() + room, to.data() + 2 * room};
      change_hsv_rows(from, width, change, out);
    };
    run(ours);
    set_simd_level(SimdLevel::kScalar);
    run(twin);
    set_simd_level(GetParam());
    for (int c = 0; c < 3; ++c) {
      for (int x = 0; x < width; ++x) {
        ASSERT_EQ(ours[size_t(c) * room + size_t(x)], twin[size_t(c) * room + size_t(x)]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, HsvRows, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
