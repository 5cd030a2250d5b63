// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

const Grid kRow = recipe_test::make_grid(1, 1, 8, [](int, int, int x) {
  return std::vector<double>{0, 1, 2, 100, 127, 128, 254, 255}[x];
});

Floats converted(DType dtype, bool scale) {
  return applied(*make_op("ToDtype", {{"dtype", dtype}, {"scale", scale}}), kRow).values;
}

// torchvision 0.29's v2.functional.to_dtype_image.
TEST(ToDtype, ScaledValuesEqualTorchvisions) {
  EXPECT_EQ(converted(DType::kFloat32, true),
            (Floats{0, 0x1.010102p-8, 0x1.010102p-7, 0x1.919194p-2, 0x1.fdfep-2, 0x1.010102p-1,
                    0x1.fdfep-1, 1}));
  EXPECT_EQ(converted(DType::kFloat16, true),
            (Floats{0, 0x1.01p-8, 0x1.01p-7, 0x1.918p-2, 0x1.fep-2, 0x1.01p-1, 0x1.fep-1, 1}));
  EXPECT_EQ(converted(DType::kBFloat16, true),
            (Floats{0, 0x1.02p-8, 0x1.02p-7, 0x1.92p-2, 0x1.fep-2, 0x1.02p-1, 0x1.fep-1, 1}));
}

TEST(ToDtype, UnscaledValuesAreUnchanged) {
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kUInt8}) {
    EXPECT_EQ(converted(dtype, false), kRow.values) << name_of(dtype);
  }
}

TEST(ToDtype, ARoundTripRestoresTheImage) {
  TestRecord record({{kRow}});
  record.apply(*make_op("ToDtype", {{"dtype", DType::kFloat32}, {"scale", true}}))
      .apply(*make_op("ToDtype", {{"dtype", DType::kUInt8}, {"scale", true}}));
  EXPECT_EQ(record.grid(), kRow);
}

TEST(ToDtype, LeavesMasksUnchangedUnlessNamed) {
  const auto op = make_op("ToDtype", {{"dtype", std::string("float32")}});
  EXPECT_TRUE(op->takes(FieldKind::kImage));
  EXPECT_FALSE(op->takes(FieldKind::kMask));
  EXPECT_FALSE(op->takes(FieldKind::kLabel));
  EXPECT_EQ(planned(*op, mask_state()).dtype, DType::kFloat32);
}

// torchvision's to_dtype of a Mask: ids are not scaled, whatever scale= says.
TEST(ToDtype, NeverScalesTheIdsOfAMask) {
  TestRecord record({{kRow}, {kRow, FieldKind::kMask}});
  record.apply(*make_op("ToDtype", {{"dtype", DType::kFloat32}, {"scale", true}}));
  EXPECT_EQ(record.grid(0).values.back(), 1.0);
  EXPECT_EQ(record.grid(1).values, kRow.values);
  EXPECT_EQ(record.grid(1).dtype, DType::kFloat32);
}

TEST(ToDtype, OtherDtypesAreRejected) {
  EXPECT_EQ(
      refusal("ToDtype", {{"dtype", DType::kInt64}}),
      "HR0510 [ToDtype] dtype must be uint8, uint16, float32, float16, bfloat16, or int16 for "
      "audio clips (got int64) | convert the batch where another dtype is needed");
  EXPECT_EQ(refusal("ToDtype", {}),
            "HR0102 [ToDtype] needs dtype: uint8, uint16, float32, float16, bfloat16, or int16 for "
            "audio; as a string or a torch dtype.");
}

}  // namespace
}  // namespace headrace::op_test
