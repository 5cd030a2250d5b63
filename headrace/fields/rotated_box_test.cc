// SPDX-License-Identifier: Apache-2.0
// Rotated boxes: values by torchvision 0.28. Pipelines are compared in tests/test_rotated_boxes.py.
#include "headrace/fields/rotated_box.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace headrace {
namespace {

constexpr Size kCanvas{61, 84};
using Box = BoxCorners<double>;

// One box inside, two that cross an edge each, and one outside.
const double kCenters[4][5] = {
    {40, 30, 20, 10, 30}, {2, 3, 20, 10, -50}, {80, 60, 30, 8, 110}, {-30, -30, 10, 4, 20}};
const Box kCorners[4] = {{28.839745962, 30.669872981, 46.160254038, 20.669872981, 51.160254038,
                          29.330127019, 33.839745962, 39.330127019},
                         {-0.597653881, -7.87438248, 12.258098312, 7.446506383, 4.597653881,
                          13.87438248, -8.258098312, -1.446506383},
                         {81.371531667, 75.463469885, 71.110927367, 47.272691262, 78.628468333,
                          44.536530115, 88.889072633, 72.727308738},
                         {-35.382503391, -30.169284525, -25.985577183, -33.589485958, -24.617496609,
                          -29.830715475, -34.014422817, -26.410514042}};
const Box kGone{0, 61, 0, 61, 0, 61, 0, 61};
const Box kSoft[4] = {kCorners[0],
                      {3.526658764, -2.959218068, 12.258098312, 7.446506383, 4.597653881,
                       13.87438248, -4.133785667, 3.468658029},
                      {77.030534435, 63.536678014, 71.110927367, 47.272691262, 78.628468333,
                       44.536530115, 84.548075402, 60.800516868},
                      kGone};
const Box kHard[4] = {kCorners[0],
                      {5.506094983, 0.0, 11.96254872, 7.694501937, 6.664546715, 12.140053465,
                       0.208092978, 4.445551528},
                      {78.882305819, 61.0, 73.561355247, 46.380808452, 78.354430632, 44.636271681,
                       83.675381205, 59.255463229},
                      kGone};

void expect_near(const double* actual, const double* expected, int count) {
  for (int i = 0; i < count; ++i) EXPECT_NEAR(actual[i], expected[i], 1e-8) << i;
}

TEST(RotatedBox, IsConvertedBetweenItsFormats) {
  for (size_t i = 0; i < 4; ++i) {
    expect_near(corners_of_rotated(kCenters[i], BoxFormat::kCXCYWHR).data(), kCorners[i].data(), 8);
    double box[5];
    convert_rotated(kCorners[i].data(), BoxFormat::kXYXYXYXY, box, BoxFormat::kXYWHR);
    expect_near(box, kCorners[i].data(), 2);
    expect_near(box + 2, kCenters[i] + 2, 3);
    convert_rotated(box, BoxFormat::kXYWHR, box, BoxFormat::kCXCYWHR);
    expect_near(box, kCenters[i], 5);
  }
}

TEST(RotatedBox, IsClampedSoftlyOrHard) {
  for (size_t i = 0; i < 4; ++i) {
    expect_near(clamped_rotated(kCorners[i], kCanvas, Clamping::kSoft).data(), kSoft[i].data(), 8);
    expect_near(clamped_rotated(kCorners[i], kCanvas, Clamping::kHard).data(), kHard[i].data(), 8);
  }
}

TEST(RotatedBox, IsMadeFromAParallelogram) {
  const Box wide{10, 10, 40, 5, 50, 25, 20, 30}, high{0, 0, 10, 10, 14, 40, 4, 30};
  const Box of_wide{10.0, 10.0, 46.486486486, 3.918918919, 50.0, 25.0, 13.513513514, 31.081081081};
  const Box of_high{0.0, 0.0, 8.515283843, -1.135371179, 14.0, 40.0, 5.484716157, 41.135371179};
  expect_near(rectangle_of(wide).data(), of_wide.data(), 8);
  expect_near(rectangle_of(high).data(), of_high.data(), 8);
}

// Invalid boxes are processed safely: no out-of-bounds reads, and every loop terminates.
TEST(RotatedBox, WithInvalidValuesIsConvertedSafely) {
  using Limits = std::numeric_limits<float>;
  for (const float strange :
       {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), Limits::max(), 0.0f}) {
    for (size_t at = 0; at < 8; ++at) {
      BoxCorners<float> box{1, 2, 3, 4, 5, 6, 7, 8};
      box[at] = strange;
      for (const Clamping how : {Clamping::kSoft, Clamping::kHard}) {
        clamped_rotated(rectangle_of(box), kCanvas, how);
      }
      float out[5];
      convert_rotated(box.data(), BoxFormat::kXYXYXYXY, out, BoxFormat::kCXCYWHR);
    }
  }
}

}  // namespace
}  // namespace headrace
