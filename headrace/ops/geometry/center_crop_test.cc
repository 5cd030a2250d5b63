// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

// Where torchvision 0.2x's v2.CenterCrop places its window or its borders; made by
// F.center_crop(coordinates, [h, w]) and reading the first pixel, -1 for padding: picture (h, w),
// crop (h, w), left and top of the window (negative: borders).
struct Case {
  int height, width, crop_height, crop_width, left, top;
};
constexpr Case kTorchvision[] = {
    {9, 9, 4, 4, 2, 2},  {9, 8, 4, 5, 2, 2},   {8, 9, 5, 4, 2, 2},   {7, 10, 4, 3, 4, 2},
    {5, 5, 5, 5, 0, 0},  {6, 11, 3, 8, 2, 2},  {3, 3, 6, 6, -1, -1}, {3, 4, 6, 5, 0, -1},
    {4, 3, 5, 6, -1, 0}, {3, 10, 6, 5, 2, -1}, {10, 3, 5, 6, -1, 2}, {1, 1, 4, 7, -3, -1},
    {1, 1, 1, 1, 0, 0},  {5, 2, 2, 5, -1, 2},  {2, 7, 7, 2, 2, -2},  {11, 13, 8, 6, 4, 2},
};

TEST(CenterCrop, WindowsAndBordersEqualTorchvisions) {
  for (const Case& c : kTorchvision) {
    const Grid grid = recipe_test::random_grid(3, c.height, c.width, 3);
    const auto op = make_op("CenterCrop", {{"size", Ints{c.crop_height, c.crop_width}}});
    const Grid expected =
        recipe_test::make_grid(3, c.crop_height, c.crop_width, [&](int ch, int y, int x) {
          const int from_y = y + c.top, from_x = x + c.left;
          const bool inside = from_y >= 0 && from_y < c.height && from_x >= 0 && from_x < c.width;
          return inside ? grid.at(ch, from_y, from_x) : 0;
        });
    EXPECT_EQ(applied(*op, grid), expected)
        << c.height << " x " << c.width << " -> " << c.crop_height << " x " << c.crop_width;
  }
}

TEST(CenterCrop, GivesAFixedShape) {
  EXPECT_EQ(planned(*make_op("CenterCrop", {{"size", int64_t{224}}}), image_state()).shape,
            (Shape{3, 224, 224}));
}

}  // namespace
}  // namespace headrace::op_test
