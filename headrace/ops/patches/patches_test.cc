// SPDX-License-Identifier: Apache-2.0
// Compares sizes with tables computed by timm 1.0.31 and transformers 5.24.
#include <gtest/gtest.h>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

// get_image_size_for_seq((h, w), patch, patches, max_ratio=ratio), 0 for None; where that is None,
// get_image_size_for_max_num_patches gives the same.
struct SequenceCase {
  int64_t height, width, patch, patches;
  double ratio;
  int64_t to_height, to_width;
};
constexpr SequenceCase kSequences[] = {
    {480, 640, 16, 256, 0.0, 224, 288},
    {480, 640, 16, 1024, 0.0, 432, 576},
    {480, 640, 14, 576, 1.0, 294, 378},
    {480, 640, 16, 1, 0.0, 16, 16},
    {480, 640, 32, 100, 0.5, 256, 320},
    {1, 1, 16, 256, 0.0, 112, 112},
    {1, 1, 16, 1024, 0.0, 112, 112},
    {1, 1, 14, 576, 1.0, 14, 14},
    {1, 1, 16, 1, 0.0, 16, 16},
    {1, 1, 32, 100, 0.5, 32, 32},
    {1, 1000, 16, 256, 0.0, 16, 4096},
    {1, 1000, 16, 1024, 0.0, 16, 16000},
    {1, 1000, 14, 576, 1.0, 14, 1008},
    {1, 1000, 16, 1, 0.0, 16, 16},
    {1, 1000, 32, 100, 0.5, 32, 512},
    {1999, 3, 16, 256, 0.0, 4096, 16},
    {1999, 3, 16, 1024, 0.0, 10672, 16},
    {1999, 3, 14, 576, 1.0, 2002, 14},
    {1999, 3, 16, 1, 0.0, 16, 16},
    {1999, 3, 32, 100, 0.5, 1024, 32},
    {1080, 1920, 16, 256, 0.0, 192, 336},
    {1080, 1920, 16, 1024, 0.0, 384, 672},
    {1080, 1920, 14, 576, 1.0, 252, 448},
    {1080, 1920, 16, 1, 0.0, 16, 16},
    {1080, 1920, 32, 100, 0.5, 224, 416},
    {3024, 4032, 16, 256, 0.0, 224, 288},
    {3024, 4032, 16, 1024, 0.0, 432, 576},
    {3024, 4032, 14, 576, 1.0, 294, 378},
    {3024, 4032, 16, 1, 0.0, 16, 16},
    {3024, 4032, 32, 100, 0.5, 288, 352},
    {97, 131, 16, 256, 0.0, 224, 288},
    {97, 131, 16, 1024, 0.0, 432, 592},
    {97, 131, 14, 576, 1.0, 98, 140},
    {97, 131, 16, 1, 0.0, 16, 16},
    {97, 131, 32, 100, 0.5, 64, 96},
    {13, 14, 16, 256, 0.0, 240, 272},
    {13, 14, 16, 1024, 0.0, 496, 528},
    {13, 14, 14, 576, 1.0, 14, 14},
    {13, 14, 16, 1, 0.0, 16, 16},
    {13, 14, 32, 100, 0.5, 32, 32},
    {224, 224, 16, 256, 0.0, 256, 256},
    {224, 224, 16, 1024, 0.0, 512, 512},
    {224, 224, 14, 576, 1.0, 224, 224},
    {224, 224, 16, 1, 0.0, 16, 16},
    {224, 224, 32, 100, 0.5, 128, 128},
    {42, 42, 16, 256, 0.0, 256, 256},
    {42, 42, 16, 1024, 0.0, 512, 512},
    {42, 42, 14, 576, 1.0, 42, 42},
    {42, 42, 16, 1, 0.0, 16, 16},
    {42, 42, 32, 100, 0.5, 32, 32},
    {70, 98, 16, 256, 0.0, 208, 304},
    {70, 98, 16, 1024, 0.0, 432, 592},
    {70, 98, 14, 576, 1.0, 70, 98},
    {70, 98, 16, 1, 0.0, 16, 16},
    {70, 98, 32, 100, 0.5, 64, 64},
    {551, 2332, 16, 256, 0.0, 128, 512},
    {551, 2332, 16, 1024, 0.0, 256, 1024},
    {551, 2332, 14, 576, 1.0, 168, 672},
    {551, 2332, 16, 1, 0.0, 16, 16},
    {551, 2332, 32, 100, 0.5, 160, 640},
    {259, 1045, 16, 256, 0.0, 128, 512},
    {259, 1045, 16, 1024, 0.0, 256, 1024},
    {259, 1045, 14, 576, 1.0, 168, 672},
    {259, 1045, 16, 1, 0.0, 16, 16},
    {259, 1045, 32, 100, 0.5, 160, 544},
    {483, 2030, 16, 256, 0.0, 128, 512},
    {483, 2030, 16, 1024, 0.0, 256, 1024},
    {483, 2030, 14, 576, 1.0, 168, 672},
    {483, 2030, 16, 1, 0.0, 16, 16},
    {483, 2030, 32, 100, 0.5, 160, 640},
    {1842, 1935, 16, 256, 0.0, 256, 256},
    {1842, 1935, 16, 1024, 0.0, 496, 528},
    {1842, 1935, 14, 576, 1.0, 322, 350},
    {1842, 1935, 16, 1, 0.0, 16, 16},
    {1842, 1935, 32, 100, 0.5, 320, 320},
    {2669, 1555, 16, 256, 0.0, 336, 192},
    {2669, 1555, 16, 1024, 0.0, 672, 384},
    {2669, 1555, 14, 576, 1.0, 434, 252},
    {2669, 1555, 16, 1, 0.0, 16, 16},
    {2669, 1555, 32, 100, 0.5, 416, 224},
    {860, 385, 16, 256, 0.0, 368, 176},
    {860, 385, 16, 1024, 0.0, 752, 336},
    {860, 385, 14, 576, 1.0, 504, 224},
    {860, 385, 16, 1, 0.0, 16, 16},
    {860, 385, 32, 100, 0.5, 448, 224},
    {1999, 117, 16, 256, 0.0, 1024, 64},
    {1999, 117, 16, 1024, 0.0, 2048, 128},
    {1999, 117, 14, 576, 1.0, 1344, 84},
    {1999, 117, 16, 1, 0.0, 16, 16},
    {1999, 117, 32, 100, 0.5, 1024, 64},
    {1597, 1773, 16, 256, 0.0, 240, 272},
    {1597, 1773, 16, 1024, 0.0, 480, 544},
    {1597, 1773, 14, 576, 1.0, 322, 350},
    {1597, 1773, 16, 1, 0.0, 16, 16},
    {1597, 1773, 32, 100, 0.5, 320, 320},
    {2489, 9, 16, 256, 0.0, 4096, 16},
    {2489, 9, 16, 1024, 0.0, 8192, 32},
    {2489, 9, 14, 576, 1.0, 2492, 14},
    {2489, 9, 16, 1, 0.0, 16, 16},
    {2489, 9, 32, 100, 0.5, 1248, 32},
    {2851, 1825, 16, 256, 0.0, 304, 208},
    {2851, 1825, 16, 1024, 0.0, 640, 400},
    {2851, 1825, 14, 576, 1.0, 420, 266},
    {2851, 1825, 16, 1, 0.0, 16, 16},
    {2851, 1825, 32, 100, 0.5, 384, 256},
};

// smart_resize(h, w, factor, least, most); 0 x 0 where it raises.
struct SmartCase {
  int64_t height, width, factor, least, most, to_height, to_width;
};
constexpr SmartCase kSmart[] = {
    {480, 640, 28, 3136, 1003520, 476, 644},
    {480, 640, 28, 3136, 200704, 364, 504},
    {480, 640, 32, 65536, 16777216, 480, 640},
    {480, 640, 28, 1, 1, 28, 28},
    {1, 1, 28, 3136, 1003520, 56, 56},
    {1, 1, 28, 3136, 200704, 56, 56},
    {1, 1, 32, 65536, 16777216, 256, 256},
    {1, 1, 28, 1, 1, 28, 28},
    {1, 1000, 28, 3136, 1003520, 0, 0},
    {1, 1000, 28, 3136, 200704, 0, 0},
    {1, 1000, 32, 65536, 16777216, 0, 0},
    {1, 1000, 28, 1, 1, 0, 0},
    {1999, 3, 28, 3136, 1003520, 0, 0},
    {1999, 3, 28, 3136, 200704, 0, 0},
    {1999, 3, 32, 65536, 16777216, 0, 0},
    {1999, 3, 28, 1, 1, 0, 0},
    {1080, 1920, 28, 3136, 1003520, 728, 1316},
    {1080, 1920, 28, 3136, 200704, 336, 588},
    {1080, 1920, 32, 65536, 16777216, 1088, 1920},
    {1080, 1920, 28, 1, 1, 28, 28},
    {3024, 4032, 28, 3136, 1003520, 840, 1148},
    {3024, 4032, 28, 3136, 200704, 364, 504},
    {3024, 4032, 32, 65536, 16777216, 3008, 4032},
    {3024, 4032, 28, 1, 1, 28, 28},
    {97, 131, 28, 3136, 1003520, 84, 140},
    {97, 131, 28, 3136, 200704, 84, 140},
    {97, 131, 32, 65536, 16777216, 224, 320},
    {97, 131, 28, 1, 1, 28, 28},
    {13, 14, 28, 3136, 1003520, 56, 84},
    {13, 14, 28, 3136, 200704, 56, 84},
    {13, 14, 32, 65536, 16777216, 256, 288},
    {13, 14, 28, 1, 1, 28, 28},
    {224, 224, 28, 3136, 1003520, 224, 224},
    {224, 224, 28, 3136, 200704, 224, 224},
    {224, 224, 32, 65536, 16777216, 256, 256},
    {224, 224, 28, 1, 1, 28, 28},
    {42, 42, 28, 3136, 1003520, 56, 56},
    {42, 42, 28, 3136, 200704, 56, 56},
    {42, 42, 32, 65536, 16777216, 256, 256},
    {42, 42, 28, 1, 1, 28, 28},
    {70, 98, 28, 3136, 1003520, 56, 112},
    {70, 98, 28, 3136, 200704, 56, 112},
    {70, 98, 32, 65536, 16777216, 224, 320},
    {70, 98, 28, 1, 1, 28, 28},
    {551, 2332, 28, 3136, 1003520, 476, 2044},
    {551, 2332, 28, 3136, 200704, 196, 896},
    {551, 2332, 32, 65536, 16777216, 544, 2336},
    {551, 2332, 28, 1, 1, 28, 28},
    {259, 1045, 28, 3136, 1003520, 252, 1036},
    {259, 1045, 28, 3136, 200704, 196, 896},
    {259, 1045, 32, 65536, 16777216, 256, 1056},
    {259, 1045, 28, 1, 1, 28, 28},
    {483, 2030, 28, 3136, 1003520, 476, 2016},
    {483, 2030, 28, 3136, 200704, 196, 896},
    {483, 2030, 32, 65536, 16777216, 480, 2016},
    {483, 2030, 28, 1, 1, 28, 28},
    {1842, 1935, 28, 3136, 1003520, 952, 1008},
    {1842, 1935, 28, 3136, 200704, 420, 448},
    {1842, 1935, 32, 65536, 16777216, 1856, 1920},
    {1842, 1935, 28, 1, 1, 28, 28},
    {2669, 1555, 28, 3136, 1003520, 1288, 756},
    {2669, 1555, 28, 3136, 200704, 560, 336},
    {2669, 1555, 32, 65536, 16777216, 2656, 1568},
    {2669, 1555, 28, 1, 1, 28, 28},
    {860, 385, 28, 3136, 1003520, 868, 392},
    {860, 385, 28, 3136, 200704, 644, 280},
    {860, 385, 32, 65536, 16777216, 864, 384},
    {860, 385, 28, 1, 1, 28, 28},
    {1999, 117, 28, 3136, 1003520, 1988, 112},
    {1999, 117, 28, 3136, 200704, 1848, 84},
    {1999, 117, 32, 65536, 16777216, 1984, 128},
    {1999, 117, 28, 1, 1, 28, 28},
    {1597, 1773, 28, 3136, 1003520, 924, 1036},
    {1597, 1773, 28, 3136, 200704, 420, 448},
    {1597, 1773, 32, 65536, 16777216, 1600, 1760},
    {1597, 1773, 28, 1, 1, 28, 28},
    {2489, 9, 28, 3136, 1003520, 0, 0},
    {2489, 9, 28, 3136, 200704, 0, 0},
    {2489, 9, 32, 65536, 16777216, 0, 0},
    {2489, 9, 28, 1, 1, 0, 0},
    {2851, 1825, 28, 3136, 1003520, 1232, 784},
    {2851, 1825, 28, 3136, 200704, 532, 336},
    {2851, 1825, 32, 65536, 16777216, 2848, 1824},
    {2851, 1825, 28, 1, 1, 28, 28},
};

TEST(ResizeToSequence, EqualsTimmsAndSiglipsSizes) {
  for (const SequenceCase& c : kSequences) {
    SCOPED_TRACE(std::to_string(c.height) + " x " + std::to_string(c.width) + " to " +
                 std::to_string(c.patches) + " patches of " + std::to_string(c.patch));
    Given given{{"patch_size", c.patch}, {"max_seq_len", c.patches}};
    if (c.ratio > 0) given["max_ratio"] = c.ratio;
    const FieldState after =
        planned(*make_op("ResizeToSequence", given), image_state({3, c.height, c.width}));
    EXPECT_EQ(after.shape, (Shape{3, c.to_height, c.to_width}));
  }
}

// The largest edges that a 32-bit header can declare; timm rejects such a large image.
TEST(ResizeToSequence, FitsTheLargestEdgesIntoTheSequence) {
  constexpr int64_t kEdge = (int64_t{1} << 31) - 1, kPatch = 16, kPatches = 1 << 18;
  const auto op = make_op("ResizeToSequence", {{"patch_size", kPatch}, {"max_seq_len", kPatches}});
  const Shape shape = planned(*op, image_state({3, kEdge, kEdge})).shape;
  ASSERT_LT(shape[1], 1 << 20);
  EXPECT_EQ(shape[1], shape[2]);
  EXPECT_LE(shape[1] / kPatch * (shape[2] / kPatch), kPatches);
}

TEST(SmartResize, EqualsTransformersSizes) {
  for (const SmartCase& c : kSmart) {
    SCOPED_TRACE(std::to_string(c.height) + " x " + std::to_string(c.width) + " by " +
                 std::to_string(c.factor));
    const auto op = make_op(
        "SmartResize", {{"factor", c.factor}, {"min_pixels", c.least}, {"max_pixels", c.most}});
    const FieldState from = image_state({3, c.height, c.width});
    if (c.to_height == 0) {
      EXPECT_NE(refusal([&] { planned(*op, from); }).find("200 to 1"), std::string::npos);
      continue;
    }
    EXPECT_EQ(planned(*op, from).shape, (Shape{3, c.to_height, c.to_width}));
  }
}

TEST(SmartResize, TreatsATooNarrowImageAsABadRecord) {
  TestRecord record({{recipe_test::random_grid(1, 1, 201, 1)}});
  const Result<void> done = record.try_apply(*make_op("SmartResize"));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code->id, "HR0591");
}

// In the order of the value's own bytes: channel, y and x of each.
TEST(Patchify, OrdersPatchesByItsLayout) {
  const Grid grid =
      recipe_test::make_grid(3, 4, 8, [](int c, int y, int x) { return 100 * c + 10 * y + x; });
  TestRecord rows({{grid}});
  rows.apply(*make_op("Patchify", {{"patch_size", int64_t{2}}}));
  const FieldValue& value = rows.value(0);
  EXPECT_EQ(value.shape, (Shape{8, 12}));
  const auto patch = [&](const FieldValue& of, size_t number, size_t values) {
    const auto bytes = of.bytes.subspan(number * values, values);
    return std::vector<int>(bytes.begin(), bytes.end());
  };
  EXPECT_EQ(patch(value, 5, 12),
            (std::vector<int>{22, 122, 222, 23, 123, 223, 32, 132, 232, 33, 133, 233}));

  TestRecord blocks({{grid}});
  blocks.apply(
      *make_op("Patchify", {{"patch_size", int64_t{2}}, {"layout", std::string("qwen2-vl")}}));
  EXPECT_EQ(blocks.value(0).shape, (Shape{8, 24}));
  // Of the second block, at x 4 to 7, the third patch is the lower left one.
  EXPECT_EQ(patch(blocks.value(0), 6, 24),
            (std::vector<int>{24,  25,  34,  35,  24,  25,  34,  35,  124, 125, 134, 135,
                              124, 125, 134, 135, 224, 225, 234, 235, 224, 225, 234, 235}));
}

TEST(Patchify, RejectsEdgesThatAreNotMultiplesOfAPatch) {
  for (const char* name : {"Patchify", "PatchCoordinates"}) {
    TestRecord record({{recipe_test::random_grid(3, 32, 31, 1)}});
    const Result<void> done = record.try_apply(*make_op(name));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code->id, "HR0590");
    EXPECT_NE(plan_refusal(name, {}, image_state({3, 32, 31})).find("HR0510"), std::string::npos);
    EXPECT_NE(refusal(name, {{"merge_size", int64_t{2}}}).find("qwen2-vl"), std::string::npos);
  }
}

TEST(PatchCoordinates, FollowTheBlocks) {
  TestRecord record({{recipe_test::random_grid(3, 2, 4, 1)}});
  record.apply(*make_op("PatchCoordinates",
                        {{"patch_size", int64_t{1}}, {"layout", std::string("qwen2-vl")}}));
  const FieldValue& value = record.value(0);
  EXPECT_EQ(value.shape, (Shape{8, 2}));
  std::vector<int64_t> numbers(16);
  std::memcpy(numbers.data(), value.bytes.data(), value.bytes.size());
  EXPECT_EQ(numbers, (std::vector<int64_t>{0, 0, 0, 1, 1, 0, 1, 1, 0, 2, 0, 3, 1, 2, 1, 3}));
}

}  // namespace
}  // namespace headrace::op_test
