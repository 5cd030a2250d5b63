// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/fields/numbers.h"
#include "headrace/ops/op.h"
#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

// Properties of every registered operator, with the arguments of its example.

// Whether this default usually makes the operator do nothing, so that its effect would not be
// tested.
bool is_neutral(const ParamValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return !*flag;
  if (const auto* number = std::get_if<int64_t>(&value)) return *number == 0;
  if (const auto* number = std::get_if<double>(&value)) return *number == 0;
  return value.index() == 0;  // None
}

// Calls it for every operator that applies to pictures, with a dtype that the operator accepts.
template <class Call>
void for_each_step(Call&& call) {
  for (const OpRecord* record : Registry<OpRecord>::all()) {
    if (!record->make) continue;
    SCOPED_TRACE(record->name);
    const std::unique_ptr<Op> op = make_op(std::string(record->name), record->example);
    if (!op->takes(FieldKind::kImage)) continue;
    FieldState state = image_state({3, 5, 7});
    const bool floats = refusal([&] { planned(*op, state); }) != "accepted";
    if (!floats && !is_picture(planned(*op, state).kind)) continue;  // its result is not a picture
    call(*record, *op, floats);
  }
}

// The fields by which the operator decides, if it needs more than pictures.
void add_objects(const Op& op, int height, int width, TestRecord& record) {
  if (op.decides_by(FieldKind::kBoxes)) {
    const auto right = static_cast<float>(width), bottom = static_cast<float>(height);
    record.add_boxes({0.2f * right, 0.2f * bottom, 0.8f * right, 0.8f * bottom});
  }
  if (op.decides_by(FieldKind::kMasks)) record.add_masks(height, width);
}

Grid run(const Op& op, bool floats, const std::vector<Picture>& pictures, uint64_t seed,
         int64_t position = 0) {
  TestRecord record(pictures, position);
  if (floats) record.apply(*make_op("ToDtype", {{"dtype", DType::kFloat32}, {"scale", true}}));
  add_objects(op, pictures[0].grid.height, pictures[0].grid.width, record);
  return record.apply(op, seed).grid();
}

// The bounds of the white part of a picture.
struct Rectangle {
  int left = 1 << 20, top = 1 << 20, right = 0, bottom = 0;
  bool empty() const { return right <= left; }
};
Rectangle rectangle_of(const Grid& grid) {
  Rectangle out;
  for (int y = 0; y < grid.height; ++y) {
    for (int x = 0; x < grid.width; ++x) {
      if (grid.at(0, y, x) != 255) continue;
      out = {std::min(out.left, x), std::min(out.top, y), std::max(out.right, x + 1),
             std::max(out.bottom, y + 1)};
    }
  }
  return out;
}

TEST(EveryOperator, DocumentsWhichFieldsFollowTheImages) {
  const auto text = [](const char* name) { return doc_text(*Registry<OpRecord>::find(name)); };
  EXPECT_NE(text("CenterCrop").find("follow their images"), std::string::npos);
  EXPECT_EQ(text("Normalize"), Registry<OpRecord>::find("Normalize")->doc);
  EXPECT_EQ(text("Compose"), Registry<OpRecord>::find("Compose")->doc);
}

TEST(EveryOperator, IsDocumented) {
  for (const OpRecord* record : Registry<OpRecord>::all()) {
    SCOPED_TRACE(record->name);
    EXPECT_GT(record->doc.size(), 30u);
    EXPECT_FALSE(record->oracle.empty());
    EXPECT_EQ(!!record->make + !!record->make_batch + !!record->expand, 1) << "exactly one";
    EXPECT_EQ(record->scope == OpScope::kBatch, record->make_batch != nullptr);
  }
}

TEST(EveryParameter, HasADocAndADefaultUnlessItIsRequired) {
  for (const OpRecord* record : Registry<OpRecord>::all()) {
    for (const Param& param : record->params) {
      SCOPED_TRACE(std::string(record->name) + "." + std::string(param.name));
      EXPECT_GT(param.doc.size(), 9u);
      EXPECT_TRUE(param.doc.ends_with("."));
      EXPECT_TRUE(!param.required || param.fallback.index() == 0) << "required, with a default";
      EXPECT_EQ(std::count_if(record->params.begin(), record->params.end(),
                              [&](const Param& other) { return other.name == param.name; }),
                1);
    }
  }
}

TEST(EveryOperator, HasAnExampleUnlessItsDefaultsHaveAnEffect) {
  for (const OpRecord* record : Registry<OpRecord>::all()) {
    for (const Param& param : record->params) {
      SCOPED_TRACE(std::string(record->name) + "." + std::string(param.name));
      const auto given = record->example.find(std::string(param.name));
      const bool has_one = given != record->example.end();
      EXPECT_TRUE(has_one || !param.required) << "is required: OpRecord::example gives it";
      const bool of_files = param.type == ParamType::kSource;  // examples have no files
      EXPECT_TRUE(has_one || of_files || !is_neutral(param.fallback))
          << "does nothing by default: OpRecord::example gives it another value";
      EXPECT_FALSE(has_one && is_neutral(given->second));
    }
    EXPECT_NO_THROW(Arguments(record->name, record->params, record->example));
  }
}

// Medium contrast, not uniform, and enough pixels for statistics.
Picture pale(uint32_t seed) {
  std::mt19937 random(seed);
  return {recipe_test::make_grid(3, 23, 27, [&](int, int, int) { return 40 + random() % 150; })};
}

TEST(EveryOperator, ItsExampleHasAnEffect) {
  const Picture picture = pale(8);
  for_each_step([&](const OpRecord& record, const Op& op, bool floats) {
    TestRecord untouched({picture});
    if (floats) untouched.apply(*make_op("ToDtype", {{"dtype", DType::kFloat32}, {"scale", true}}));
    const Grid before = untouched.grid();
    bool acts = false;
    for (int64_t position = 0; position < 20; ++position) {
      acts |= run(op, floats, {picture}, 5, position) != before;
    }
    EXPECT_TRUE(acts) << record.name << ": no record is changed by " << example_text(record);
  });
}

TEST(EveryOperator, ItsScopeMatchesItsEdits) {
  for_each_step([](const OpRecord& record, const Op& op, bool) {
    EXPECT_EQ(record.scope == OpScope::kPartners, op.partners() > 0);
  });
  for (const OpRecord* record : Registry<OpRecord>::all()) {
    if (!record->make_batch) continue;
    const Arguments arguments(record->name, record->params, record->example);
    EXPECT_GE(record->make_batch(arguments)->group(), 1) << record->name;
  }
}

TEST(EveryStructuralOperator, ExpandsItsExample) {
  for (const OpRecord* record : Registry<OpRecord>::all()) {
    if (!record->expand || record->params.empty()) continue;
    EXPECT_NE(written(std::string(record->name), record->example), "") << record->name;
  }
}

TEST(EveryOperator, ItsExampleIsPrintedAsWritten) {
  const auto shown = [](const char* name) { return example_text(*Registry<OpRecord>::find(name)); };
  EXPECT_EQ(shown("Grayscale"), "Grayscale()");
  EXPECT_EQ(shown("ToDtype"), "ToDtype(dtype=\"float32\", scale=True)");
  EXPECT_EQ(shown("Fork"), "Fork(field=\"image\", one=[RandomVerticalFlip()], two=[])");
  EXPECT_EQ(shown("RandomApply"), "RandomApply(transforms=[RandomVerticalFlip(p=1)])");
}

TEST(EveryOperator, GivesThePlannedResultForOddSizesAndOnePixel) {
  for_each_step([](const OpRecord& record, const Op& op, bool floats) {
    for (Size size : {Size{1, 1}, Size{1, 7}, Size{9, 1}, Size{3, 3}, Size{13, 17}}) {
      SCOPED_TRACE(std::to_string(size.height) + " x " + std::to_string(size.width));
      FieldState state =
          image_state({3, size.height, size.width}, floats ? DType::kFloat32 : DType::kUInt8);
      const std::string refused = refusal([&] { op.plan(state); });
      if (refused != "accepted") {  // only a crop may reject a picture as too small
        EXPECT_NE(refused.find("larger than"), std::string::npos) << record.name << refused;
        continue;
      }
      const Grid grid =
          run(op, floats, {{recipe_test::random_grid(3, size.height, size.width, 1)}}, 1);
      const Shape shape{grid.channels, grid.height, grid.width};
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        const int64_t said = state.shape[axis];
        EXPECT_EQ(shape[axis], said < 0 ? shape[axis] : said) << "axis " << axis;
      }
      EXPECT_EQ(grid.dtype, state.dtype);
    }
  });
}

// Everything accepted at plan time must work at run time; ASan detects samples mistaken for bytes.
TEST(EveryOperator, AcceptsOrRejectsOtherDTypesThanUint8) {
  constexpr int kHeight = 23, kWidth = 27;
  struct Form {
    DType dtype;
    int channels;
  };
  constexpr Form kForms[] = {{DType::kUInt8, 1},  {DType::kUInt8, 2},   {DType::kUInt8, 4},
                             {DType::kUInt8, 5},  {DType::kUInt16, 1},  {DType::kUInt16, 3},
                             {DType::kUInt16, 7}, {DType::kFloat32, 3}, {DType::kFloat32, 16},
                             {DType::kFloat16, 3}};
  for_each_step([&](const OpRecord& record, const Op& op, bool) {
    for (const Form& form : kForms) {
      SCOPED_TRACE(text_of(form.dtype, {form.channels}));
      FieldState state = image_state({form.channels, kHeight, kWidth}, form.dtype);
      const std::string refused = refusal([&] { op.plan(state); });
      if (refused != "accepted") {
        EXPECT_TRUE(refused.starts_with("HR05")) << record.name << ": " << refused;
        continue;
      }
      auto picture =
          std::make_shared<headrace::Picture>(form.channels, kHeight, kWidth, form.dtype);
      const size_t sample = size_of(form.dtype);
      for (size_t i = 0; i < picture->pixels.size() / sample; ++i) {
        store_value(is_floating(form.dtype) ? double(i % 97) / 97 : double(i * 31 % 251),
                    form.dtype, picture->pixels.data() + i * sample);
      }
      for (int64_t position = 0; position < 6; ++position) {
        TestRecord tested({{recipe_test::random_grid(1, kHeight, kWidth, 1)}}, position);
        tested.recipe() = Recipe(picture);
        add_objects(op, kHeight, kWidth, tested);
        ASSERT_TRUE(tested.try_apply(op, 3)) << record.name;
        ASSERT_TRUE(tested.renderer().materialize(tested.recipe())) << record.name;
        EXPECT_EQ(tested.recipe().dtype(), state.dtype) << record.name;
        EXPECT_EQ(tested.recipe().channels(), state.shape[0]) << record.name;
      }
    }
  });
}

TEST(EveryOperator, SameSeedGivesTheSameBytes) {
  const std::vector<Picture> pictures = {{recipe_test::random_grid(3, 13, 17, 2)}};
  for_each_step([&](const OpRecord&, const Op& op, bool floats) {
    for (int64_t position = 0; position < 10; ++position) {
      EXPECT_EQ(run(op, floats, pictures, 5, position), run(op, floats, pictures, 5, position));
    }
  });
}

TEST(EveryOperator, DrawsIfAndOnlyIfDeclaredRandom) {
  const std::vector<Picture> pictures = {pale(3)};
  for_each_step([&](const OpRecord& record, const Op& op, bool floats) {
    bool differs = false;
    for (int64_t position = 1; position < 20; ++position) {
      differs |= run(op, floats, pictures, 5, position) != run(op, floats, pictures, 5, 0);
    }
    EXPECT_EQ(differs, record.random);
  });
}

TEST(EveryOperator, GivesAResultIndependentOfEarlierRecords) {
  for_each_step([](const OpRecord&, const Op& op, bool floats) {
    const Picture picture{recipe_test::random_grid(3, 13, 17, 4)};
    const Grid alone = run(op, floats, {picture}, 6, 3);
    for (int64_t position = 0; position < 3; ++position) {
      run(op, floats, {{recipe_test::random_grid(3, 31, 9, uint32_t(position))}}, 6, position);
    }
    EXPECT_EQ(run(op, floats, {picture}, 6, 3), alone);
    EXPECT_EQ(run(op, floats, {picture, picture}, 6, 3), alone) << "also beside another field";
  });
}

// For operators that act on rows alone and at most read pictures.
TEST(EveryOperatorOnRows, ChangesOnlyTheRowsOfItsExample) {
  int met = 0;
  for (const OpRecord* record : Registry<OpRecord>::all()) {
    if (!record->make) continue;
    const std::unique_ptr<Op> op = make_op(std::string(record->name), record->example);
    if (op->takes(FieldKind::kImage) || op->partners() > 0) continue;
    if (!op->takes(FieldKind::kBoxes) && !op->takes(FieldKind::kKeypoints)) continue;
    SCOPED_TRACE(record->name);
    ++met;
    const Picture picture{recipe_test::random_grid(3, 23, 27, 9)};
    TestRecord changed({picture});
    const int boxes = changed.add_boxes({-3, 2, 9, 12, 5, 5, 5.5, 6, 8, 8, 26, 30});
    const int points = changed.add_rows(FieldKind::kKeypoints, {3, 2}, {1, 2, 40, 3, -5, 30});
    const int labels = changed.add_rows(FieldKind::kTensor, {3}, {1, 2, 3});
    const std::vector<float> boxes_before = changed.boxes(boxes);
    const std::vector<float> points_before = changed.numbers(points);
    changed.apply(*op);
    EXPECT_EQ(changed.grid(), picture.grid);
    const bool acts = changed.boxes(boxes) != boxes_before ||
                      changed.numbers(points) != points_before ||
                      changed.value(boxes).clamping != FieldValue().clamping;
    EXPECT_TRUE(acts) << example_text(*record);
    const int64_t rows = changed.value(boxes).shape[0];
    for (const int field : {boxes, points, labels}) {
      EXPECT_EQ(changed.value(field).shape[0], op->changes_rows() ? rows : 3);
      EXPECT_EQ(size_t(element_count(changed.value(field).shape)), changed.numbers(field).size());
    }
  }
  EXPECT_GE(met, 6);
}

// A white rectangle on black, and its box: after the step the box is still at the white area.
TEST(EveryOperatorThatMovesPictures, MovesBoxesWithTheirPixels) {
  for_each_step([](const OpRecord& record, const Op& op, bool) {
    const FieldState boxes{"boxes", FieldKind::kBoxes, DType::kFloat32, {-1, 4}, {}};
    if (!op.moves() || op.partners() > 0 || !op.cannot_move(boxes).empty()) return;
    int compared = 0;
    for (int64_t position = 0; position < 60; ++position) {
      const Window object{4 + int(position % 5), 3, 6, 7};
      const Grid grid = recipe_test::make_grid(1, 17, 19, [&](int, int y, int x) {
        const bool inside = x >= object.x && x < object.x + object.width && y >= object.y &&
                            y < object.y + object.height;
        return inside ? 255 : 0;
      });
      TestRecord moved({{grid, FieldKind::kMask}}, position);
      const int boxes =
          moved.add_boxes({float(object.x), float(object.y), float(object.x + object.width),
                           float(object.y + object.height)});
      moved.apply(op, 7);
      const std::vector<float> box = moved.boxes(boxes);
      const Grid shown = moved.grid();
      const Rectangle white = rectangle_of(shown);
      if (white.empty()) continue;
      ++compared;
      // A nearest-neighbor resize makes a pixel white if its center is white, and drops a rotated
      // corner where it is thinner than a pixel.
      const double most = op.measures() ? 2 : 1;
      EXPECT_NEAR(box[0], white.left, most) << record.name;
      EXPECT_NEAR(box[1], white.top, most) << record.name;
      EXPECT_NEAR(box[2], white.right, most) << record.name;
      EXPECT_NEAR(box[3], white.bottom, most) << record.name;
    }
    EXPECT_GE(compared, 5) << record.name;
  });
}

}  // namespace
}  // namespace headrace::op_test
