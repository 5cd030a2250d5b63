// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

const Given kImageNet = {{"mean", Floats{0.485, 0.456, 0.406}},
                         {"std", Floats{0.229, 0.224, 0.225}}};

// torchvision 0.29's v2.functional: to_dtype_image(scale=True), then normalize_image, for 0, 100
// and 255 in every channel.
TEST(Normalize, ValuesEqualTorchvisions) {
  const std::map<DType, Floats> expected = {
      {DType::kFloat32,
       {-0x1.0f177ap+1, -0x1.9f28a2p-2, 0x1.1fdc3ap+1, -0x1.049248p+1, -0x1.23daaap-2,
        0x1.36db6ep+1, -0x1.cdf012p+0, -0x1.f802f2p-5, 0x1.51eb86p+1}},
      {DType::kFloat16,
       {-0x1.0f4p+1, -0x1.ap-2, 0x1.1fcp+1, -0x1.048p+1, -0x1.248p-2, 0x1.36cp+1, -0x1.cep+0,
        -0x1.facp-5, 0x1.51cp+1}},
      {DType::kBFloat16,
       {-0x1.1p+1, -0x1.9cp-2, 0x1.2p+1, -0x1.04p+1, -0x1.1ep-2, 0x1.3ap+1, -0x1.dp+0, -0x1.f2p-5,
        0x1.52p+1}}};
  const Grid grid = recipe_test::make_grid(
      3, 1, 3, [](int, int, int x) { return std::vector<double>{0, 100, 255}[x]; });
  for (const auto& [dtype, values] : expected) {
    TestRecord record({{grid}});
    record.apply(*make_op("ToDtype", {{"dtype", dtype}, {"scale", true}}))
        .apply(*make_op("Normalize", kImageNet));
    EXPECT_EQ(record.grid().values, values) << name_of(dtype);
  }
}

TEST(Normalize, IntegersAreRejectedWithAHint) {
  EXPECT_EQ(
      plan_refusal("Normalize", kImageNet, image_state()),
      "HR0510 [Normalize] works on floats, but \"image\" is uint8 here | put ToDtype(float32, "
      "scale=True) before it");
  EXPECT_EQ(plan_refusal("Normalize", kImageNet, image_state({3, 2, 2}, DType::kFloat16)),
            "accepted");
}

TEST(Normalize, MasksAreRejectedEvenIfNamed) {
  FieldState mask = mask_state();
  mask.dtype = DType::kFloat32;
  EXPECT_EQ(plan_refusal("Normalize", {{"mean", 0.5}, {"std", 0.5}}, mask),
            "HR0510 [Normalize] \"mask\" is a mask: its values are class ids | remove it from "
            "fields=; kinds={\"mask\": \"image\"} says that it is an image");
}

TEST(Normalize, WrongChannelCountsAndAZeroStdAreRejected) {
  EXPECT_EQ(plan_refusal("Normalize", {{"mean", Floats{0.5, 0.5}}, {"std", 1.0}},
                         image_state({3, 2, 2}, DType::kFloat32)),
            "HR0510 [Normalize] mean must have one value, or one for each of the 3 channels of "
            "\"image\" (got 2)");
  EXPECT_EQ(refusal("Normalize", {{"mean", 0.5}, {"std", Floats{1, 0, 1}}}),
            "HR0510 [Normalize] std must not be 0 | use 1 for a constant channel");
  EXPECT_EQ(refusal("Normalize", {{"mean", 0.5}, {"std", 1e-60}}),
            "HR0510 [Normalize] std must not be 0 | use 1 for a constant channel");
}

}  // namespace
}  // namespace headrace::op_test
