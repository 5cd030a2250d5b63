// SPDX-License-Identifier: Apache-2.0
// Keypoints follow a geometry as torchvision 0.28's functionals move them.
#include <gtest/gtest.h>

#include "headrace/fields/field_test_values.h"

namespace headrace::field_test {
namespace {

const double kBlack[] = {0};

// Two points with their visibility, on a canvas of 41 x 53.
std::vector<float> moved(const Geometry& geometry) {
  FieldValue value = value_of<float>(FieldKind::kKeypoints, {3.5f, 4.25f, 2, 60, -1, 1}, {1, 2, 3});
  EXPECT_TRUE(follow(value, geometry, {41, 53}));
  return numbers_of<float>(value);
}
using Floats = std::vector<float>;

TEST(Keypoints, MoveAsInTorchvision) {
  EXPECT_EQ(moved(Geometry().flip_horizontal()), (Floats{48.5f, 4.25f, 2, -8, -1, 1}));
  EXPECT_EQ(moved(Geometry().flip_vertical()), (Floats{3.5f, 35.75f, 2, 60, 41, 1}));
  EXPECT_EQ(moved(Geometry().crop({5, 7, 31, 23})), (Floats{-1.5f, -2.75f, 2, 55, -8, 1}));
  EXPECT_EQ(moved(Geometry().pad({3, 2, 1, 4}, kBlack)), (Floats{6.5f, 6.25f, 2, 63, 1, 1}));
  EXPECT_EQ(moved(Geometry().resize({30, 37}, Filter::kBilinear)),
            (Floats{2.4433961f, 3.1097562f, 2, 41.886791f, -0.73170733f, 1}));
}

TEST(Keypoints, SwapTheirAxesWithTheImage) {
  EXPECT_EQ(moved(Geometry().transpose()), (Floats{4.25f, 3.5f, 2, -1, 60, 1}));
}

TEST(Keypoints, OfOneNumberDoNotFollow) {
  const FieldState xs{"x", FieldKind::kKeypoints, DType::kFloat32, {-1, 1}, {}};
  EXPECT_FALSE(follows(xs));
}

}  // namespace
}  // namespace headrace::field_test
