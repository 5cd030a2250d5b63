// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace resize_test {

// torchvision 0.29's _compute_resized_output_size: picture (h, w), size, max_size (0: None), result
// (h, w). Where it gives an edge of 0, which no picture can have, this Resize gives 1.
struct Case {
  int height, width, size, max_size, to_height, to_width;
};
constexpr Case kTorchvision[] = {
    {480, 640, 256, 0, 256, 341},
    {480, 640, 224, 0, 224, 298},
    {480, 640, 1, 0, 1, 1},
    {480, 640, 232, 300, 225, 300},
    {480, 640, 100, 101, 75, 101},
    {480, 640, 0, 512, 384, 512},
    {480, 640, 0, 3, 2, 3},
    {640, 480, 256, 0, 341, 256},
    {640, 480, 224, 0, 298, 224},
    {640, 480, 1, 0, 1, 1},
    {640, 480, 232, 300, 300, 225},
    {640, 480, 100, 101, 101, 75},
    {640, 480, 0, 512, 512, 384},
    {640, 480, 0, 3, 3, 2},
    {333, 500, 256, 0, 256, 384},
    {333, 500, 224, 0, 224, 336},
    {333, 500, 1, 0, 1, 1},
    {333, 500, 232, 300, 200, 300},
    {333, 500, 100, 101, 67, 101},
    {333, 500, 0, 512, 340, 512},
    {333, 500, 0, 3, 1, 3},
    {500, 333, 256, 0, 384, 256},
    {500, 333, 224, 0, 336, 224},
    {500, 333, 1, 0, 1, 1},
    {500, 333, 232, 300, 300, 200},
    {500, 333, 100, 101, 101, 67},
    {500, 333, 0, 512, 512, 340},
    {500, 333, 0, 3, 3, 1},
    {1, 1, 256, 0, 256, 256},
    {1, 1, 224, 0, 224, 224},
    {1, 1, 1, 0, 1, 1},
    {1, 1, 232, 300, 232, 232},
    {1, 1, 100, 101, 100, 100},
    {1, 1, 0, 512, 512, 512},
    {1, 1, 0, 3, 3, 3},
    {1, 1000, 256, 0, 256, 256000},
    {1, 1000, 224, 0, 224, 224000},
    {1, 1000, 1, 0, 1, 1000},
    {1, 1000, 232, 300, 0, 300},
    {1, 1000, 100, 101, 0, 101},
    {1, 1000, 0, 512, 0, 512},
    {1, 1000, 0, 3, 0, 3},
    {1000, 1, 256, 0, 256000, 256},
    {1000, 1, 224, 0, 224000, 224},
    {1000, 1, 1, 0, 1000, 1},
    {1000, 1, 232, 300, 300, 0},
    {1000, 1, 100, 101, 101, 0},
    {1000, 1, 0, 512, 512, 0},
    {1000, 1, 0, 3, 3, 0},
    {7, 7, 256, 0, 256, 256},
    {7, 7, 224, 0, 224, 224},
    {7, 7, 1, 0, 1, 1},
    {7, 7, 232, 300, 232, 232},
    {7, 7, 100, 101, 100, 100},
    {7, 7, 0, 512, 512, 512},
    {7, 7, 0, 3, 3, 3},
    {375, 500, 256, 0, 256, 341},
    {375, 500, 224, 0, 224, 298},
    {375, 500, 1, 0, 1, 1},
    {375, 500, 232, 300, 225, 300},
    {375, 500, 100, 101, 75, 101},
    {375, 500, 0, 512, 384, 512},
    {375, 500, 0, 3, 2, 3},
    {3, 1999, 256, 0, 256, 170581},
    {3, 1999, 224, 0, 224, 149258},
    {3, 1999, 1, 0, 1, 666},
    {3, 1999, 232, 300, 0, 300},
    {3, 1999, 100, 101, 0, 101},
    {3, 1999, 0, 512, 0, 512},
    {3, 1999, 0, 3, 0, 3},
};

Given given(const Case& c) {
  Given given;
  if (c.size) given["size"] = int64_t{c.size};
  if (c.max_size) given["max_size"] = int64_t{c.max_size};
  return given;
}

TEST(Resize, SizesEqualTorchvisions) {
  for (const Case& c : kTorchvision) {
    TestRecord record({{recipe_test::random_grid(1, c.height, c.width, 1)}});
    const auto op = make_op("Resize", given(c));
    const Size expected{std::max(1, c.to_height), std::max(1, c.to_width)};
    EXPECT_EQ(planned(*op, image_state({1, c.height, c.width})).shape,
              (Shape{1, expected.height, expected.width}));
    EXPECT_EQ(record.apply(*op).recipe().size(), expected)
        << c.height << " x " << c.width << " size " << c.size << " max_size " << c.max_size;
  }
}

// Pillow 13.0.0: Image.fromarray(a).resize((w, h), filter) of a[y, x] = (37x + 91y + 13xy) % 256, 5
// rows of 7.
TEST(Resize, PixelsEqualPillows) {
  const Grid grid = recipe_test::make_grid(
      1, 5, 7, [](int, int y, int x) { return (x * 37 + y * 91 + x * y * 13) % 256; });
  const std::map<std::string, Floats> expected = {
      {"bilinear", {61, 128, 127, 163, 151, 142, 148, 140, 106, 125, 142, 131}},
      {"bicubic", {57, 131, 126, 162, 155, 148, 148, 139, 103, 127, 143, 130}},
      {"nearest", {0, 74, 148, 222, 182, 52, 178, 48, 108, 30, 208, 130}}};
  for (const auto& [filter, values] : expected) {
    const auto op = make_op("Resize", {{"size", Ints{3, 4}}, {"interpolation", filter}});
    EXPECT_EQ(applied(*op, grid).values, values) << filter;
  }
}

TEST(Resize, MasksGetNoNewLabels) {
  const Grid mask = recipe_test::make_grid(
      1, 8, 8, [](int, int y, int x) { return (x / 3 + y / 3) % 2 ? 255 : 7; });
  TestRecord record({{recipe_test::random_grid(3, 8, 8, 2)}, {mask, FieldKind::kMask}});
  record.apply(
      *make_op("Resize", {{"size", Ints{5, 11}}, {"interpolation", std::string("bicubic")}}));
  for (double label : record.grid(1).values) EXPECT_TRUE(label == 7 || label == 255) << label;
  EXPECT_EQ(record.grid(1), applied(*make_op("Resize", {{"size", Ints{5, 11}},
                                                        {"interpolation", std::string("nearest")}}),
                                    mask));
}

TEST(Resize, OneNumberMakesTheShapeUnknownAndTheErrorNamesTheStep) {
  const FieldState state = planned(*make_op("Resize", {{"size", int64_t{256}}}), image_state());
  EXPECT_EQ(state.shape, (Shape{3, -1, -1}));
  EXPECT_EQ(state.left_open_by, "Resize, which fixes one edge and keeps the aspect ratio");
  EXPECT_EQ(planned(*make_op("Resize", {{"size", Ints{8, 9}}}), image_state()).shape,
            (Shape{3, 8, 9}));
}

TEST(Resize, AVeryLongImageMakesABadRecordBeforeAllocation) {
  TestRecord record({{recipe_test::random_grid(1, 1, 60000, 3)}});
  Result<void> done = record.try_apply(*make_op("Resize", {{"size", int64_t{256}}}));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code->id, "HR0503");
  EXPECT_EQ(done.error().what,
            "[Resize] 1 x 60000 pixels (height x width) would become 256 x 15360000");
}

TEST(Resize, ContradictoryArgumentsAreRejected) {
  EXPECT_EQ(
      refusal("Resize", {}),
      "HR0510 [Resize] needs size, or max_size with size=None | size=256 for the shorter edge, "
      "size=(height, width), or max_size=1024");
  EXPECT_EQ(
      refusal("Resize", {{"size", int64_t{100}}, {"max_size", int64_t{100}}}),
      "HR0510 [Resize] max_size must be larger than size, the shorter edge (got 100 and 100)");
  EXPECT_EQ(refusal("Resize", {{"size", Ints{1, 2}}, {"max_size", int64_t{100}}}),
            "HR0510 [Resize] max_size requires one size for the shorter edge, not (height, width)");
  EXPECT_EQ(
      refusal("Resize",
              {{"size", int64_t{1}}, {"antialias", false}, {"interpolation", std::string("box")}}),
      "HR0513 [Resize] \"box\" does not support antialias=False | omit antialias; \"nearest\", "
      "\"nearest-exact\", \"bilinear\" and \"bicubic\" support it");
  EXPECT_EQ(refusal("Resize", {{"size", int64_t{0}}}),
            "HR0104 [Resize] size must be from 1 to 65536 (got 0)");
}

}  // namespace resize_test
}  // namespace headrace::op_test
