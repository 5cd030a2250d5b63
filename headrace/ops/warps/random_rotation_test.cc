// SPDX-License-Identifier: Apache-2.0
// Everything except pixels, which tests/test_warps.py compares with the libraries.
#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

TEST(RandomRotation, ByAMultipleOf90DegreesNeedsNoPixels) {
  for (const double angle : {0.0, 90.0, 180.0, 270.0, -450.0}) {
    TestRecord record({{coordinates(6, 6)}});
    const Recipe before = record.recipe();
    record.apply(*make_op("RandomRotation", {{"degrees", Floats{angle, angle}}}));
    EXPECT_TRUE(record.recipe().same_source(before)) << angle;
  }
  TestRecord record({{coordinates(6, 6)}});
  const Recipe before = record.recipe();
  record.apply(*make_op("RandomRotation", {{"degrees", Floats{91, 91}}}));
  EXPECT_FALSE(record.recipe().same_source(before));
}

TEST(RandomRotation, RotatesCounterclockwise) {
  const Grid turned =
      applied(*make_op("RandomRotation", {{"degrees", Floats{90, 90}}, {"expand", true}}),
              coordinates(3, 5));
  ASSERT_EQ(turned.height, 5);
  ASSERT_EQ(turned.width, 3);
  EXPECT_EQ(turned.at(0, 0, 0), 4) << "the right upper corner is the left upper one";
  EXPECT_EQ(turned.at(1, 0, 0), 0);
  EXPECT_EQ(turned.at(1, 0, 2), 2);
}

TEST(RandomRotation, MakesTheShapeUnknownIfItGrowsWithTheAngle) {
  const auto op = make_op("RandomRotation", {{"degrees", int64_t{30}}, {"expand", true}});
  const FieldState state = planned(*op, image_state({3, 40, 60}));
  EXPECT_EQ(state.shape, (Shape{3, -1, -1}));
  EXPECT_NE(state.left_open_by.find("expand=True"), std::string::npos);
  const auto fixed = make_op("RandomRotation", {{"degrees", Floats{90, 90}}, {"expand", true}});
  EXPECT_EQ(planned(*fixed, image_state({3, 40, 60})).shape, (Shape{3, 60, 40}));
}

TEST(RandomRotation, RejectsUnsupportedInputs) {
  const Given degrees{{"degrees", int64_t{30}}};
  for (DType dtype : {DType::kUInt16, DType::kFloat32}) {
    EXPECT_EQ(plan_refusal("RandomRotation", degrees, image_state({3, 4, 4}, dtype)), "accepted");
  }
  Given smooth = degrees;
  smooth["interpolation"] = std::string("bilinear");
  smooth["arithmetic"] = std::string("pillow");
  EXPECT_NE(plan_refusal("RandomRotation", smooth, image_state({3, 4, 4}, DType::kFloat32))
                .find("HR0510"),
            std::string::npos);
  EXPECT_NE(plan_refusal("RandomRotation", smooth, image_state({4, 4, 4})).find("HR0510"),
            std::string::npos);
  EXPECT_EQ(plan_refusal("RandomRotation", degrees, image_state({4, 4, 4})), "accepted");
  EXPECT_NE(refusal("RandomRotation", {{"degrees", Floats{3, 2}}}).find("HR0510"),
            std::string::npos);
  EXPECT_NE(refusal("RandomRotation", {{"degrees", int64_t{-3}}}).find("HR0510"),
            std::string::npos);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(refusal("RandomRotation", {{"degrees", Floats{nan, nan}}}), "accepted");
}

TEST(RandomRotation, DoesNotAllocateFarTooLargeImages) {
  TestRecord record({{coordinates(2, 60'000)}});
  const auto op = make_op("RandomRotation", {{"degrees", Floats{45, 45}}, {"expand", true}});
  const Result<void> done = record.try_apply(*op);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code->id, "HR0507");
}

}  // namespace
}  // namespace headrace::op_test
