// SPDX-License-Identifier: Apache-2.0
// Boxes follow a geometry as torchvision 0.28's functionals move them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "headrace/fields/field_test_values.h"

namespace headrace::field_test {
namespace {

constexpr Size kCanvas{41, 53};

// The three boxes of a case, and what crop(7, 5, 23, 31), pad([3, 2, 1, 4]), resize([30, 37]),
// horizontal_flip and vertical_flip make of them on that canvas.
template <class Number>
struct Case {
  BoxFormat format;
  std::vector<Number> boxes;
  std::vector<std::vector<Number>> moved;
};

// The second box extends beyond the edges, the third is outside the crop.
const std::vector<Case<float>> kFloats = {
    {BoxFormat::kXYXY,
     {3.25f, 4.75f, 20.875f, 30.2f, -6.5f, 10.25f, 60.125f, 39.9f, 45.0f, 2.0f, 52.75f, 9.5f},
     {{0.0f, 0.0f, 15.875f, 23.0f, 0.0f, 3.25f, 31.0f, 23.0f, 31.0f, 0.0f, 31.0f, 2.5f},
      {6.25f, 6.75f, 23.875f, 32.2f, 0.0f, 12.25f, 57.0f, 41.9f, 48.0f, 4.0f, 55.75f, 11.5f},
      {2.268868f, 3.4756098f, 14.573113f, 22.097563f, -4.537736f, 7.5f, 41.974056f, 29.195124f,
       31.415094f, 1.4634147f, 36.82547f, 6.9512196f},
      {32.125f, 4.75f, 49.75f, 30.2f, -7.125f, 10.25f, 59.5f, 39.9f, 0.25f, 2.0f, 8.0f, 9.5f},
      {3.25f, 10.799999f, 20.875f, 36.25f, -6.5f, 1.0999985f, 60.125f, 30.75f, 45.0f, 31.5f, 52.75f,
       39.0f}}},
    {BoxFormat::kXYWH,
     {3.25f, 4.75f, 17.625f, 25.45f, -6.5f, 10.25f, 66.625f, 29.650002f, 45.0f, 2.0f, 7.75f, 7.5f},
     {{0.0f, 0.0f, 15.875f, 23.0f, 0.0f, 3.25f, 31.0f, 19.75f, 31.0f, 0.0f, 0.0f, 2.5f},
      {6.25f, 6.75f, 17.625f, 25.45f, 0.0f, 12.25f, 57.0f, 29.650002f, 48.0f, 4.0f, 7.75f, 7.5f},
      {2.268868f, 3.4756098f, 12.304245f, 18.621952f, -4.537736f, 7.5f, 46.51179f, 21.695124f,
       31.415094f, 1.4634147f, 5.4103775f, 5.487805f},
      {32.125f, 4.75f, 17.625f, 25.45f, -7.125f, 10.25f, 66.625f, 29.650002f, 0.25f, 2.0f, 7.75f,
       7.5f},
      {3.25f, 10.799999f, 17.625f, 25.45f, -6.5f, 1.0999985f, 66.625f, 29.650002f, 45.0f, 31.5f,
       7.75f, 7.5f}}},
    {BoxFormat::kCXCYWH,
     {12.0625f, 17.475f, 17.625f, 25.45f, 26.8125f, 25.075f, 66.625f, 29.650002f, 48.875f, 5.75f,
      7.75f, 7.5f},
     {{7.9375f, 11.5f, 15.875f, 23.0f, 15.5f, 13.125f, 31.0f, 19.75f, 31.0f, 1.25f, 0.0f, 2.5f},
      {15.0625f, 19.475f, 17.625f, 25.45f, 28.5f, 27.075f, 57.0f, 29.650002f, 51.875f, 7.75f, 7.75f,
       7.5f},
      {8.420991f, 12.786586f, 12.304245f, 18.621952f, 18.71816f, 18.347563f, 46.51179f, 21.695124f,
       34.12028f, 4.2073174f, 5.4103775f, 5.487805f},
      {40.9375f, 17.475f, 17.625f, 25.45f, 26.1875f, 25.075f, 66.625f, 29.650002f, 4.125f, 5.75f,
       7.75f, 7.5f},
      {12.0625f, 23.525f, 17.625f, 25.45f, 26.8125f, 15.924999f, 66.625f, 29.650002f, 48.875f,
       35.25f, 7.75f, 7.5f}}}};

const std::vector<Case<int64_t>> kIntegers = {{BoxFormat::kXYXY,
                                               {3, 4, 20, 30, -6, 10, 60, 39, 45, 2, 52, 9},
                                               {{0, 0, 15, 23, 0, 3, 31, 23, 31, 0, 31, 2},
                                                {6, 6, 23, 32, 0, 12, 57, 41, 48, 4, 55, 11},
                                                {2, 2, 13, 21, -4, 7, 41, 28, 31, 1, 36, 6},
                                                {33, 4, 50, 30, -7, 10, 59, 39, 1, 2, 8, 9},
                                                {3, 11, 20, 37, -6, 2, 60, 31, 45, 32, 52, 39}}},
                                              {BoxFormat::kXYWH,
                                               {3, 4, 17, 25, -6, 10, 66, 29, 45, 2, 7, 7},
                                               {{0, 0, 15, 22, 0, 3, 31, 20, 31, 0, 0, 2},
                                                {6, 6, 17, 25, 0, 12, 57, 29, 48, 4, 7, 7},
                                                {2, 2, 11, 18, -4, 7, 46, 21, 31, 1, 4, 5},
                                                {33, 4, 17, 25, -7, 10, 66, 29, 1, 2, 7, 7},
                                                {3, 12, 17, 25, -6, 2, 66, 29, 45, 32, 7, 7}}},
                                              {BoxFormat::kCXCYWH,
                                               {12, 17, 17, 25, 26, 25, 66, 29, 48, 5, 7, 7},
                                               {{7, 11, 15, 22, 15, 13, 31, 19, 31, 0, 0, 1},
                                                {15, 19, 17, 25, 28, 27, 57, 29, 51, 7, 7, 7},
                                                {8, 12, 11, 18, 18, 18, 46, 21, 33, 3, 4, 5},
                                                {41, 17, 17, 25, 27, 25, 66, 29, 5, 5, 7, 7},
                                                {12, 24, 17, 25, 26, 16, 66, 29, 48, 36, 7, 7}}}};

std::vector<Geometry> the_moves() {
  static const double black[] = {0};
  return {Geometry().crop({5, 7, 31, 23}), Geometry().pad({3, 2, 1, 4}, black),
          Geometry().resize({30, 37}, Filter::kBilinear), Geometry().flip_horizontal(),
          Geometry().flip_vertical()};
}

template <class Number>
std::vector<Number> moved(BoxFormat format, const std::vector<Number>& boxes,
                          const Geometry& geometry, Size canvas = kCanvas) {
  FieldValue value = value_of(FieldKind::kBoxes, boxes, {std::ssize(boxes) / 4, 4});
  value.box_format = format;
  EXPECT_TRUE(follow(value, geometry, canvas));
  return numbers_of<Number>(value);
}

TEST(Boxes, OfFloatsMoveAsInTorchvision) {
  for (const Case<float>& each : kFloats) {
    for (size_t move = 0; move < each.moved.size(); ++move) {
      EXPECT_EQ(moved(each.format, each.boxes, the_moves()[move]), each.moved[move])
          << name_of(each.format) << " " << move;
    }
  }
}

TEST(Boxes, OfIntegersMoveAsInTorchvision) {
  for (const Case<int64_t>& each : kIntegers) {
    const std::vector<int32_t> narrow(each.boxes.begin(), each.boxes.end());
    for (size_t move = 0; move < each.moved.size(); ++move) {
      EXPECT_EQ(moved(each.format, each.boxes, the_moves()[move]), each.moved[move])
          << name_of(each.format) << " " << move;
      const std::vector<int32_t> got = moved(each.format, narrow, the_moves()[move]);
      EXPECT_EQ(std::vector<int64_t>(got.begin(), got.end()), each.moved[move]);
    }
  }
}

TEST(Boxes, AreClampedAfterEachMoveThatCrops) {
  // Half of the box is clipped; after the image is flipped, the remaining half is unchanged.
  const Geometry cut = Geometry().crop({0, 0, 10, 10}).flip_horizontal();
  EXPECT_EQ(moved<float>(BoxFormat::kXYXY, {5, 2, 15, 8}, cut), (std::vector<float>{0, 2, 5, 8}));
}

TEST(Boxes, OutsideTheImageRemainAsRowsWithoutArea) {
  const Geometry cut = Geometry().crop({20, 20, 10, 10});
  EXPECT_EQ(moved<float>(BoxFormat::kXYWH, {1, 2, 3, 4, 40, 1, 5, 50}, cut),
            (std::vector<float>{0, 0, 0, 0, 10, 0, 0, 10}));
}

TEST(Boxes, SwapTheirAxesWithTheImage) {
  const Geometry turned = Geometry().transpose().flip_horizontal();  // a quarter turn
  EXPECT_EQ(moved<float>(BoxFormat::kXYXY, {1, 2, 11, 7}, turned),
            (std::vector<float>{34, 1, 39, 11}))
      << "mirrored on a canvas of 41 columns";
}

TEST(Boxes, WithHostileValuesStayFinite) {
  const float nan = std::nanf(""), huge = 3e38f;
  for (const BoxFormat format : {BoxFormat::kXYXY, BoxFormat::kXYWH, BoxFormat::kCXCYWH}) {
    for (const Geometry& geometry : the_moves()) {
      EXPECT_EQ(moved<float>(format, {nan, huge, -huge, nan}, geometry).size(), 4u);
      EXPECT_EQ(moved<int64_t>(format, {INT64_MIN, INT64_MAX, -1, INT64_MIN}, geometry).size(), 4u);
      EXPECT_EQ(moved<int32_t>(format, {INT32_MIN, INT32_MAX, -1, INT32_MIN}, geometry).size(), 4u);
    }
  }
}

TEST(Boxes, MayBeEmpty) {
  for (const Geometry& geometry : the_moves()) {
    EXPECT_TRUE(moved<float>(BoxFormat::kXYXY, {}, geometry).empty());
  }
}

TEST(Boxes, FollowOnlyIfTheirFormatIsDeclared) {
  FieldState boxes{"boxes", FieldKind::kBoxes, DType::kFloat32, {-1, 4}, {}};
  EXPECT_FALSE(follows(boxes));
  EXPECT_NE(record_of(FieldKind::kBoxes).wants(boxes).find("kinds={\"boxes\": \"boxes:xyxy\"}"),
            std::string::npos);
  boxes.box_format = BoxFormat::kXYXY;
  EXPECT_TRUE(follows(boxes));
  boxes.dtype = DType::kUInt8;
  EXPECT_FALSE(follows(boxes));
  boxes.dtype = DType::kFloat32;
  boxes.shape = {-1};
  EXPECT_FALSE(follows(boxes)) << "one coordinate of each";
}

}  // namespace
}  // namespace headrace::field_test
