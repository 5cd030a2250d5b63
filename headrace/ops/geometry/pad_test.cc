// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace pad_test {

const Grid kGrid = recipe_test::random_grid(3, 4, 5, 1);
constexpr double kBlack[] = {0, 0, 0}, kColor[] = {1, 2, 3};

TEST(Pad, OneNumberSetsAllBorders) {
  EXPECT_EQ(applied(*make_op("Pad", {{"padding", int64_t{2}}}), kGrid),
            with_borders(kGrid, 2, 2, 2, 2, kBlack));
}

TEST(Pad, TwoNumbersSetLeftRightAndTopBottom) {
  EXPECT_EQ(applied(*make_op("Pad", {{"padding", Ints{1, 3}}}), kGrid),
            with_borders(kGrid, 1, 3, 1, 3, kBlack));
}

TEST(Pad, FourNumbersSetLeftTopRightBottom) {
  const auto op = make_op("Pad", {{"padding", Ints{1, 2, 3, 4}}, {"fill", Ints{1, 2, 3}}});
  EXPECT_EQ(applied(*op, kGrid), with_borders(kGrid, 1, 2, 3, 4, kColor));
  EXPECT_EQ(planned(*op, image_state({3, 4, 5})).shape, (Shape{3, 10, 9}));
  EXPECT_EQ(planned(*op, image_state({3, -1, 5})).shape, (Shape{3, -1, 9}));
}

TEST(Pad, FillHasTheDtypeAtThatPoint) {
  TestRecord record({{kGrid}});
  record.apply(*make_op("ToDtype", {{"dtype", DType::kFloat32}, {"scale", true}}))
      .apply(*make_op("Pad", {{"padding", int64_t{1}}, {"fill", 0.5}}));
  EXPECT_EQ(record.grid().at(2, 0, 0), 0.5);
  EXPECT_EQ(record.grid().at(1, 1, 1), float(kGrid.at(1, 0, 0)) * (1.0f / 255));
}

// NumPy: np.float32(np.float16(0.1)), and ml_dtypes.bfloat16(0.1).
TEST(Pad, AFillOfANarrowDtypeIsRoundedBeforeLaterSteps) {
  const auto border = [](DType dtype) {
    TestRecord record({{kGrid}});
    record.apply(*make_op("ToDtype", {{"dtype", dtype}, {"scale", true}}));
    EXPECT_TRUE(record.renderer().materialize(record.recipe()));
    record.apply(*make_op("Pad", {{"padding", int64_t{1}}, {"fill", 0.1}}))
        .apply(*make_op("ToDtype", {{"dtype", DType::kFloat32}}));
    return record.grid().at(2, 0, 0);
  };
  EXPECT_EQ(border(DType::kFloat16), 0.0999755859375);
  EXPECT_EQ(border(DType::kBFloat16), 0.10009765625);
  EXPECT_EQ(border(DType::kFloat32), 0.1f);
}

TEST(Pad, InvalidArgumentsAreRejected) {
  EXPECT_EQ(refusal("Pad", {{"padding", Ints{1, 2, 3}}}),
            "HR0510 [Pad] padding must have 1, 2 or 4 values (got 3) | all borders; left/right and "
            "top/bottom; or left, top, right, bottom");
  EXPECT_EQ(refusal("Pad", {{"padding", int64_t{-1}}}),
            "HR0104 [Pad] padding must be from 0 to 65536 (got -1)");
  EXPECT_EQ(refusal("Pad", {{"padding", int64_t{1}}, {"padding_mode", std::string("mirror")}}),
            "HR0104 [Pad] padding_mode must be one of \"constant\", \"edge\", \"reflect\", "
            "\"symmetric\" (got \"mirror\")");
  EXPECT_EQ(
      plan_refusal("Pad", {{"padding", int64_t{1}}, {"fill", 0.5}}, image_state()),
      "HR0512 [Pad] fill must be a whole number from 0 to 255, as \"image\" is uint8 here (got "
      "0.5)");
  EXPECT_EQ(plan_refusal("Pad", {{"padding", int64_t{1}}, {"fill", Ints{1, 2}}}, image_state()),
            "HR0512 [Pad] fill must have one value, or one for each of the 3 channels of \"image\" "
            "(got 2)");
  EXPECT_EQ(plan_refusal("Pad", {{"padding", int64_t{1}}, {"fill", Ints{1, 2, 3}}}, mask_state()),
            "HR0512 [Pad] mask_fill must have one value, or one for each of the 1 channels of "
            "\"mask\" (got 3) | a mask has one channel: pass one number, such as mask_fill=0");
}

}  // namespace pad_test
}  // namespace headrace::op_test
