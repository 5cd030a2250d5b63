// SPDX-License-Identifier: Apache-2.0
// Expected values are torchvision's and Pillow's own, recorded here; tests/test_colors.py compares
// all colors with the libraries.
#include <gtest/gtest.h>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

// A row of colors, as computed by torchvision 0.28's rgb_to_grayscale and Pillow 13's convert("L").
struct Color {
  int rgb[3];
  int torchvision, pillow;
};
constexpr Color kColors[] = {
    {{0, 0, 0}, 0, 0},           {{255, 255, 255}, 254, 255}, {{255, 0, 0}, 76, 76},
    {{0, 255, 0}, 149, 150},     {{0, 0, 255}, 29, 29},       {{1, 2, 3}, 1, 2},
    {{128, 128, 128}, 127, 128}, {{200, 100, 50}, 124, 124},  {{17, 231, 90}, 150, 151},
};
constexpr int kCount = std::size(kColors);

Grid colors() {
  return recipe_test::make_grid(3, 1, kCount, [](int c, int, int x) { return kColors[x].rgb[c]; });
}

TEST(Grayscale, EqualsTheRequestedLibrary) {
  const Grid torchvision = applied(*make_op("Grayscale"), colors());
  const Grid pillow =
      applied(*make_op("Grayscale", {{"arithmetic", std::string("pillow")}}), colors());
  ASSERT_EQ(torchvision.channels, 1);
  for (int x = 0; x < kCount; ++x) {
    EXPECT_EQ(torchvision.at(0, 0, x), kColors[x].torchvision) << x;
    EXPECT_EQ(pillow.at(0, 0, x), kColors[x].pillow) << x;
  }
}

TEST(Grayscale, GivesThreeEqualChannelsOnRequest) {
  const Grid one = applied(*make_op("Grayscale"), colors());
  const Grid three =
      applied(*make_op("Grayscale", {{"num_output_channels", int64_t{3}}}), colors());
  ASSERT_EQ(three.channels, 3);
  for (int c = 0; c < 3; ++c) {
    for (int x = 0; x < kCount; ++x) EXPECT_EQ(three.at(c, 0, x), one.at(0, 0, x));
  }
}

TEST(Grayscale, GrayImagesAreUnchanged) {
  const Grid gray = recipe_test::random_grid(1, 5, 7, 1);
  EXPECT_EQ(applied(*make_op("Grayscale"), gray), gray);
  const Grid three = applied(*make_op("Grayscale", {{"num_output_channels", int64_t{3}}}), gray);
  ASSERT_EQ(three.channels, 3);
  EXPECT_EQ(three.at(2, 4, 6), gray.at(0, 4, 6));
}

TEST(Grayscale, DescribesItsOutput) {
  const auto op = make_op("Grayscale");
  EXPECT_EQ(planned(*op, image_state()).shape, (Shape{1, -1, -1}));
  EXPECT_FALSE(op->takes(FieldKind::kMask));
  EXPECT_FALSE(op->moves());
}

TEST(Grayscale, RejectsUnsupportedInputs) {
  EXPECT_EQ(refusal("Grayscale", {{"num_output_channels", int64_t{2}}}),
            "HR0510 [Grayscale] num_output_channels must be 1 or 3 (got 2)");
  EXPECT_EQ(plan_refusal("Grayscale", {}, image_state({4, 5, 5})).substr(0, 71),
            "HR0510 [Grayscale] does not work on the 4 channels of \"image\" | select ");
  EXPECT_NE(plan_refusal("Grayscale", {}, mask_state()).find("is a mask"), std::string::npos);
  EXPECT_NE(plan_refusal("Grayscale", {{"arithmetic", std::string("pillow")}},
                         image_state({3, 5, 5}, DType::kFloat32))
                .find("works on uint8, but \"image\" is float32 here"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::op_test
