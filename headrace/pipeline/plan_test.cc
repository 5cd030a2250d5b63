// SPDX-License-Identifier: Apache-2.0
// Records through a plan: initial states, errors, coins, branches, and that a record of tensors
// needs no allocation.
#include "headrace/pipeline/plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <new>

#include "headrace/base/allocations_test_hook.h"
#include "headrace/pipeline/plan_test_records.h"

namespace {
thread_local long allocations = 0;
}  // namespace

void headrace::before_allocation() { ++allocations; }

namespace headrace::plan_test {
namespace {

TEST(Begin, TensorsScalarsAndTextAreUnchanged) {
  const PlanPtr plan = plan_of({tensor("boxes", {-1, 2}), label(), text("caption")}, {}, lists());
  Read read;
  read.tensor<float>({1, 2, 3, 4, 5, 6}, {3, 2}).scalar(-7).text("a mill");
  Processed run(plan, read);
  ASSERT_TRUE(run.result());
  EXPECT_EQ(run.value("boxes").shape, (Shape{3, 2}));
  EXPECT_EQ(run.value("boxes").bytes.size(), 24u);
  EXPECT_EQ(run.value("label").scalar, -7);
  EXPECT_EQ(run.value("caption").bytes.size(), 6u);
}

TEST(Begin, AnEmptyRaggedTensorIsValid) {
  const PlanPtr plan = plan_of({tensor("boxes", {-1, 4})}, {}, lists());
  Processed run(plan, Read().tensor<float>({}, {0, 4}));
  ASSERT_TRUE(run.result());
  EXPECT_EQ(run.value("boxes").shape, (Shape{0, 4}));
}

TEST(Begin, ValuesThatDoNotFitTheSchemaAreDataErrors) {
  const auto error = [](const Field& field, const Read& read) {
    Processed run(plan_of({field}, {}, lists()), read);
    return run.result()
               ? ""
               : std::string(run.result().error().code->id) + " " + run.result().error().what;
  };
  EXPECT_EQ(error(tensor("x", {3}), Read().tensor<float>({1, 2}, {})),
            "HR0120 \"x\" has 8 bytes, but the schema has float32 (3,)");
  EXPECT_EQ(error(tensor("x", {-1, 4}), Read().tensor<float>({1, 2}, {1, 2})),
            "HR0120 \"x\" has 8 bytes as float32 (1, 2), but the schema has float32 (?, 4)");
  EXPECT_EQ(error(tensor("x", {-1, 4}), Read().tensor<float>({1, 2}, {-1, 4})),
            "HR0120 \"x\" has 8 bytes as float32 (?, 4), but the schema has float32 (?, 4)");
  EXPECT_EQ(error(pixels("x", {3, 2, 2}), Read().tensor<uint8_t>({1, 2}, {})),
            "HR0120 \"x\" has 2 bytes, but the schema has uint8 (3, 2, 2)");
  EXPECT_EQ(error(pixels("x", {1, -1, -1}), Read().tensor<uint8_t>({}, {1, 0, 5})),
            "HR0120 \"x\" has 0 bytes as uint8 (1, 0, 5), but the schema has uint8 (1, ?, ?)");
}

TEST(Begin, FieldsOfOneRowGroupHaveTheSameNumberOfRows) {
  Field boxes = tensor("boxes", {-1, 4}), areas = tensor("areas", {-1});
  Field points = tensor("points", {-1, 2});
  boxes.row_group = areas.row_group = 1;
  points.row_group = 2;
  const PlanPtr plan = plan_of({boxes, points, areas}, {}, lists());
  const auto read = [](const std::vector<float>& of_areas) {
    return Read()
        .tensor<float>({1, 2, 3, 4}, {1, 4})
        .tensor<float>({}, {0, 2})
        .tensor<float>(of_areas, {std::ssize(of_areas)});
  };
  EXPECT_TRUE(Processed(plan, read({8})).result());
  Processed run(plan, read({8, 9}));
  ASSERT_FALSE(run.result());
  EXPECT_EQ(run.result().error().code->id, "HR0123");
  EXPECT_EQ(run.result().error().what, "\"areas\" has 2 rows, \"boxes\" 1");
}

TEST(Begin, BytesThatAreNotAnImageMakeABadRecord) {
  const PlanPtr plan = plan_of({files("image")}, {crop(8)});
  Processed run(plan, Read().text("not an image at all, but long enough to be asked"));
  ASSERT_FALSE(run.result());
  EXPECT_EQ(run.result().error().code->kind, ErrorKind::kData);
}

TEST(Begin, ColorMasksMakeABadRecord) {
  const PlanPtr plan = plan_of({files("mask", FieldKind::kMask)}, {crop(8)});
  Processed run(plan, Read().file(recipe_test::jpeg_bytes(16, 16)));
  ASSERT_FALSE(run.result());
  EXPECT_EQ(run.result().error().message(),
            "HR0121 mask with several channels: \"mask\" has 3 channels");
}

// EXIF 2.3, tag 274, with the transforms of Pillow's ImageOps.exif_transpose: none, mirror, 180
// degrees, mirror top to bottom, transpose, 270 degrees counter-clockwise, transverse, 90.
TEST(Begin, ImagesAreRotatedByTheirExifTagOnRequest) {
  const Buffer plain = recipe_test::jpeg_bytes(24, 16);
  Processed stored(plan_of({files("image")}, {}, lists()), Read().file(plain));
  const Grid p = stored.grid(), t = transposed(p);
  const Grid expected[] = {p, mirror_x(p), mirror_x(mirror_y(p)), mirror_y(p),
                           t, mirror_x(t), mirror_x(mirror_y(t)), mirror_y(t)};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Read read = Read().file(recipe_test::with_orientation(plain, orientation));
    PlanOptions options = lists();
    EXPECT_EQ(Processed(plan_of({files("image")}, {}, options), read).grid(), p);
    options.exif_orientation = true;
    EXPECT_EQ(Processed(plan_of({files("image")}, {}, options), read).grid(),
              expected[orientation - 1])
        << orientation;
  }
}

TEST(Advance, RandomApplySkipsItsWholeListAsOftenAsRequested) {
  const PlanPtr plan = plan_of({pixels("image", {1, 1, 2})},
                               {maybe(0.3, {flip(1), maybe(0.5, {flip(1), flip(1)})})});
  Read read;
  read.pixels(recipe_test::make_grid(1, 1, 2, [](int, int, int x) { return x; }));
  int taken = 0;
  constexpr int kRecords = 10000;
  for (int64_t position = 0; position < kRecords; ++position) {
    taken += Processed(plan, read, position).grid().at(0, 0, 0) == 1;
  }
  EXPECT_NEAR(taken, 0.3 * kRecords, 4 * std::sqrt(0.21 * kRecords));
}

TEST(Advance, BranchesOfAForkDrawIndependently) {
  const Specs list = {crop(4)};
  const PlanPtr plan =
      plan_of({pixels("image", {3, 20, 20})}, {fork("image", {{"view1", list}, {"view2", list}})});
  int equal = 0;
  for (int64_t position = 0; position < 50; ++position) {
    Processed run(plan, Read().pixels(recipe_test::random_grid(3, 20, 20, 1)), position);
    equal += run.grid("view1") == run.grid("view2");
  }
  EXPECT_LT(equal, 5);
}

TEST(Advance, DrawsDependOnSeedEpochAndPosition) {
  const PlanPtr plan = plan_of({pixels("image", {3, 40, 40})}, {crop(4)});
  Read read;
  read.pixels(recipe_test::random_grid(3, 40, 40, 1));
  const Grid grid = Processed(plan, read, 5, 6, 7).grid();
  EXPECT_EQ(Processed(plan, read, 5, 6, 7).grid(), grid);
  EXPECT_NE(Processed(plan, read, 6, 6, 7).grid(), grid);
  EXPECT_NE(Processed(plan, read, 5, 7, 7).grid(), grid);
  EXPECT_NE(Processed(plan, read, 5, 6, 8).grid(), grid);
}

TEST(Advance, ErrorsNameTheStep) {
  const PlanPtr plan =
      plan_of({files("image")}, {flip(), spec("RandomCrop", {{"size", int64_t{99}}})});
  Processed run(plan, Read().file(recipe_test::jpeg_bytes(16, 16)));
  ASSERT_FALSE(run.result());
  EXPECT_EQ(run.result().error().note, "in transform 2, RandomCrop(size=99)");
}

TEST(Record, WithSmallTensorsNeedsNoAllocation) {
  const Schema schema = {tensor("x", {16}), tensor("boxes", {-1, 2}), label(), text("t")};
  const PlanPtr plan = plan_of(schema, {}, lists());
  Read read;
  read.tensor<float>(std::vector<float>(16), {}).tensor<float>({1, 2}, {1, 2}).scalar(3).text("hi");
  Record record;
  Renderer renderer;
  const auto once = [&](int64_t position) {
    record.position = position;
    return plan->begin(read.data(), record, renderer).has_value() &&
           plan->advance(0, record, renderer, 0, 0).has_value();
  };
  ASSERT_TRUE(once(0));
  const long before = allocations;
  for (int64_t position = 1; position < 100; ++position) ASSERT_TRUE(once(position));
  EXPECT_EQ(allocations, before);
}

TEST(Record, WithPixelsReusesItsMemory) {
  const PlanPtr plan =
      plan_of({pixels("image", {3, 32, 32}), label()}, {flip(), crop(28), to_float()});
  Read read;
  read.pixels(recipe_test::random_grid(3, 32, 32, 1)).scalar(3);
  Record record;
  Renderer renderer;
  const auto once = [&](int64_t position) {
    record.position = position;
    return plan->begin(read.data(), record, renderer).has_value() &&
           plan->advance(0, record, renderer, 0, 0).has_value();
  };
  ASSERT_TRUE(once(0));
  const long before = allocations;
  for (int64_t position = 1; position < 100; ++position) ASSERT_TRUE(once(position));
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace headrace::plan_test
