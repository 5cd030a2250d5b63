// SPDX-License-Identifier: Apache-2.0
// Planes follow a geometry in the same way as masks that are images.
#include <gtest/gtest.h>

#include "headrace/fields/field_test_values.h"
#include "headrace/image/recipe_test_images.h"

namespace headrace::field_test {
namespace masks_test {

using recipe_test::Grid;

const double kBlack[] = {0};

std::vector<Geometry> test_geometries() {
  return {Geometry().crop({5, 7, 31, 23}),
          Geometry().pad({3, 2, 1, 4}, kBlack),
          Geometry().resize({30, 37}, Filter::kBilinear),
          Geometry().resize({60, 17}, Filter::kBilinear),
          Geometry().flip_horizontal(),
          Geometry().flip_vertical(),
          Geometry().transpose(),
          Geometry().pad({3, 2, 1, 4}, kBlack).crop({1, 1, 50, 40}).flip_horizontal().transpose(),
          Geometry().crop({5, 7, 31, 23}).resize({24, 24}, Filter::kBicubic).flip_vertical()};
}

// The same by the recipe of a mask, which is tested against Pillow.
TEST(Planes, AreMasks) {
  const Grid planes = recipe_test::random_grid(3, 41, 53, 7);
  for (const Geometry& geometry : test_geometries()) {
    FieldValue value = value_of<uint8_t>(FieldKind::kMasks,
                                         {planes.values.begin(), planes.values.end()}, {3, 41, 53});
    ASSERT_TRUE(follow(value, geometry, {41, 53}));
    FieldValue mask;
    mask.kind = FieldKind::kMask;
    mask.picture = recipe_test::recipe_of(planes);
    ASSERT_TRUE(follow(mask, geometry, {41, 53}));
    Renderer renderer;
    const Grid wanted = recipe_test::render(mask.picture, renderer);
    EXPECT_EQ(value.shape, (Shape{3, wanted.height, wanted.width}));
    EXPECT_EQ(numbers_of<uint8_t>(value),
              std::vector<uint8_t>(wanted.values.begin(), wanted.values.end()));
  }
}

TEST(Planes, OfWideNumbersKeepTheirValues) {
  FieldValue depth = value_of<double>(FieldKind::kMasks, {0.25, 1e300, -3, 4, 5, 6}, {2, 3});
  ASSERT_TRUE(follow(depth, Geometry().flip_horizontal().transpose(), {2, 3}));
  EXPECT_EQ(depth.shape, (Shape{3, 2}));
  EXPECT_EQ(numbers_of<double>(depth), (std::vector<double>{-3, 6, 1e300, 5, 0.25, 4}));
}

TEST(Planes, OfADifferentSizeThanTheImageAreRejected) {
  FieldValue value = value_of<uint8_t>(FieldKind::kMasks, {1, 2, 3, 4}, {1, 2, 2});
  const Result<void> done = follow(value, Geometry().flip_horizontal(), {2, 3});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code->id, "HR0122");
}

TEST(Planes, ExceedingARecordsMemoryAreRejectedBeforeAllocation) {
  FieldValue value = value_of<uint8_t>(FieldKind::kMasks, std::vector<uint8_t>(90), {9, 1, 10});
  Renderer renderer;
  renderer.allow_values(9 * 64 * 640);
  const auto resized = [&](int height) {
    FieldValue copy = value;
    const Geometry geometry = Geometry().resize({height, 640}, Filter::kNearest);
    return record_of(value.kind).follow({geometry, {1, 10}, renderer}, copy);
  };
  EXPECT_TRUE(resized(64));
  const Result<void> done = resized(65);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code->id, "HR0124");
}

TEST(Planes, MayBeEmpty) {
  FieldValue value = value_of<uint8_t>(FieldKind::kMasks, {}, {0, 41, 53});
  ASSERT_TRUE(follow(value, Geometry().crop({0, 0, 5, 4}), {41, 53}));
  EXPECT_EQ(value.shape, (Shape{0, 4, 5}));
  EXPECT_TRUE(value.bytes.empty());
}

}  // namespace masks_test
}  // namespace headrace::field_test
