// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/boxes/anchor_match.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <string>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace {
namespace {

using Corners = std::array<float, 4>;

class AnchorMatch : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

float iou_of(const Corners& a, const Corners& b) {
  const float wide = std::min(a[2], b[2]) - std::max(a[0], b[0]);
  const float high = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  const float shared = std::max(wide, 0.0f) * std::max(high, 0.0f);
  const float one = (a[2] - a[0]) * (a[3] - a[1]), other = (b[2] - b[0]) * (b[3] - b[1]);
  return shared / (other + one - shared);
}

Corners random_box(std::mt19937& random, int grid) {
  const auto at = [&](float from) { return from + float(random() % unsigned(grid)) / 7.0f; };
  Corners box{at(0), at(0), 0, 0};
  box[2] = at(box[0] + 0.1f);
  box[3] = at(box[1] + 0.1f);
  return box;
}

// Few distinct positions, so that many IoUs are equal; the last one wins.
TEST_P(AnchorMatch, EqualsMatchingOneAnchorAtATime) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 300; ++trial) {
    const int count = 1 + int(random() % 100), grid = trial % 2 ? 4 : 300;
    AnchorColumns columns;
    std::vector<Corners> anchors;
    for (int i = 0; i < count; ++i) {
      const Corners& one = anchors.emplace_back(random_box(random, grid));
      columns.add(one[0], one[1], one[2], one[3]);
    }
    ASSERT_EQ(columns.size(), size_t(count));
    const float criteria = trial % 3 ? 0.3f : 0.0f;
    AnchorMatches matches(columns, criteria);
    std::vector<float> best(size_t(count), criteria);
    std::vector<int32_t> match(size_t(count), -1);
    for (int row = 0; row < 9; ++row) {
      const Corners box = random_box(random, grid);
      const int32_t its = match_anchors(columns, box.data(), row, matches);
      size_t largest = 0;
      for (size_t i = 0; i < anchors.size(); ++i) {
        const float iou = iou_of(anchors[i], box);
        if (iou >= iou_of(anchors[largest], box)) largest = i;
        if (iou <= criteria || iou < best[i]) continue;
        best[i] = iou;
        match[i] = row;
      }
      ASSERT_EQ(its, int32_t(largest));
    }
    ASSERT_TRUE(std::equal(match.begin(), match.end(), matches.row.begin()));
    ASSERT_TRUE(std::equal(best.begin(), best.end(), matches.best.begin()));
  }
}

TEST_P(AnchorMatch, ReturnsAnAnchorEvenWithoutOverlap) {
  AnchorColumns columns;
  for (int i = 0; i < 20; ++i) columns.add(0, 0, 1, 1);
  AnchorMatches matches(columns, 0.5f);
  const float far[] = {5, 5, 6, 6};
  EXPECT_EQ(match_anchors(columns, far, 0, matches), 19) << "the last of equals, none beyond";
  const float most = std::numeric_limits<float>::max(), huge[] = {-most, -most, most, most};
  const int32_t its = match_anchors(columns, huge, 1, matches);
  EXPECT_TRUE(its >= 0 && its < 20);
  EXPECT_EQ(matches.row[3], -1);
}

INSTANTIATE_TEST_SUITE_P(Levels, AnchorMatch, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
