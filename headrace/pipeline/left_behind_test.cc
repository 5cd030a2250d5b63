// SPDX-License-Identifier: Apache-2.0
// Fields that a step may leave unmoved, and when that is rejected.
#include <gtest/gtest.h>

#include "headrace/pipeline/plan_test_records.h"

namespace headrace::plan_test {
namespace {

Field spatial(const std::string& name, FieldKind kind, Shape shape) {
  return {name, kind, DType::kFloat32, std::move(shape), false};
}

// Boxes without a known format, points with one coordinate, an array that may be a picture.
const Field kBoxes = spatial("boxes", FieldKind::kBoxes, {-1, 4});
const Field kXs = spatial("xs", FieldKind::kKeypoints, {-1});
const Field kView{"view", FieldKind::kMasks, DType::kUInt8, {3, 6, 8}, false};
// And the fields that follow.
const Field kCorners{"corners", FieldKind::kBoxes, DType::kFloat32, {-1, 4},
                     false,     BoxFormat::kXYXY};
const Field kPoints = spatial("points", FieldKind::kKeypoints, {-1, 17, 3});
const Field kMasks = spatial("masks", FieldKind::kMasks, {-1, -1, -1});
const Schema kDetection = {files("image"), kBoxes, label()};

PlanOptions delivering(std::vector<std::string> fields) {
  PlanOptions options = lists();
  options.fields = std::move(fields);
  return options;
}

bool left_behind(const Schema& schema, const Specs& transforms,
                 const PlanOptions& options = lists()) {
  return refusal(schema, transforms, options).starts_with("HR0180");
}

const Specs kGeometry = {flip(),
                         crop(8),
                         resize(8, 8),
                         spec("Pad", {{"padding", int64_t{2}}}),
                         spec("CenterCrop", {{"size", int64_t{8}}}),
                         spec("RandomResizedCrop", {{"size", int64_t{8}}}),
                         maybe(0.5, {flip()})};

TEST(FieldsOfAnImage, FollowEveryStepThatMovesIt) {
  for (const Spec& step : kGeometry) {
    for (const Field& field : {kCorners, kPoints, kMasks}) {
      const PlanPtr plan = plan_of({files("image"), label(), field}, {step}, lists());
      EXPECT_EQ(plan->steps().back().fields, (std::vector<int>{0, 2})) << step.name;
      EXPECT_TRUE(plan->steps().back().left_behind.empty());
    }
  }
}

TEST(FieldsOfAnImage, ArePlannedWithTheImage) {
  const PlanPtr plan = plan_of({kMasks, files("image"), kCorners}, {resize(6, 8)}, lists());
  const std::vector<FieldState>& after = plan->steps()[0].after;
  EXPECT_EQ(after[0].shape, (Shape{-1, 6, 8}));
  EXPECT_EQ(after[1].shape, (Shape{3, 6, 8}));
  EXPECT_EQ(after[2].shape, (Shape{-1, 4}));
}

TEST(FieldsOfAnImage, RequireTheirImageToBeRead) {
  const PlanPtr plan = plan_of({files("image"), kCorners}, {flip()}, delivering({"corners"}));
  EXPECT_EQ(plan->steps().at(0).fields, (std::vector<int>{0, 1}));
  EXPECT_TRUE(plan->wanted()[0]);
}

TEST(FieldsOfAnImage, DoNotFollowAfterAnImageHasMovedWithoutThem) {
  const Schema schema = {files("image"), kCorners};
  const Spec alone = spec("RandomHorizontalFlip", {}, {"image"});
  EXPECT_FALSE(left_behind(schema, {alone}));
  EXPECT_TRUE(left_behind(schema, {alone, flip()}));
  EXPECT_FALSE(left_behind(schema, {alone, spec("RandomVerticalFlip", {}, {"image", "corners"})}));
}

TEST(BoxesStayWhereTheyWere, WhenAnImageMovesWhichIsRejected) {
  for (const Spec& step : kGeometry) {
    for (const Field& field : {kBoxes, kXs, kView}) {
      EXPECT_TRUE(left_behind({files("image"), field}, {step})) << step.name << " " << field.name;
    }
  }
  EXPECT_EQ(
      refusal(kDetection, {flip()}, lists()),
      "HR0180 RandomHorizontalFlip(p=0.5) moves \"image\" but would leave \"boxes\" (boxes) "
      "unchanged | only boxes with a declared format can follow it: open the source with "
      "kinds={\"boxes\": \"boxes:xyxy\"}, or xywh, cxcywh; leave \"boxes\" out with the loader's "
      "fields=; or fields=\"image\" of the transform moves it alone");
}

TEST(BoxesStayWhereTheyWere, WhenOnlyColorsChange) {
  EXPECT_EQ(
      refusal(kDetection, {to_float(), normalize(), spec("RandomErasing", {{"p", 0.5}})}, lists()),
      "accepted");
}

TEST(AMapOfBytes, MayBeAMaskThatMovesWithTheImage) {
  const Schema schema = {files("image"), {"seg", FieldKind::kMasks, DType::kUInt8, {6, 8}, false}};
  EXPECT_NE(refusal(schema, {flip()}, lists()).find("kinds={\"seg\": \"mask\"} of the source"),
            std::string::npos);
  const Schema wide = {files("image"), {"ids", FieldKind::kMasks, DType::kInt64, {6, 8}, false}};
  EXPECT_EQ(refusal(wide, {flip()}, lists()), "accepted") << "no image has such values";
}

TEST(AnArrayOfThreeChannels, MayBeAnImageThatMovesWithTheOther) {
  EXPECT_NE(refusal({files("image"), kView}, {flip()}, lists())
                .find("kinds={\"view\": \"image\"} of the source"),
            std::string::npos);
}

TEST(UnusedFields, NeedNotFollowTheirImage) {
  EXPECT_FALSE(left_behind(kDetection, {flip()}, delivering({"image", "label"})));
  EXPECT_FALSE(left_behind(kDetection, {flip()}, delivering({"boxes"}))) << "no image moves";
  EXPECT_EQ(refusal([&] { make_plan(kDetection, Pipeline{{flip()}, {}, {"boxes"}}, lists()); }),
            "accepted");
  PlanOptions looking = lists();
  looking.for_inspection = true;
  EXPECT_FALSE(left_behind(kDetection, {flip()}, looking));
}

TEST(AnExplicitChoice, MovesTheImageAlone) {
  EXPECT_FALSE(left_behind(kDetection, {spec("RandomHorizontalFlip", {}, {"image"})}));
  const std::vector<Branch> list{{"", {flip(), crop(8)}}};
  EXPECT_FALSE(left_behind(kDetection, {spec("Compose", {{"transforms", list}}, {"image"})}));
  EXPECT_TRUE(left_behind(kDetection, {spec("Compose", {{"transforms", list}})}));
}

TEST(ImagesOfARecord, MoveTogether) {
  const Schema schema = {files("left"), files("right"), files("mask", FieldKind::kMask)};
  EXPECT_EQ(refusal(schema, {flip(), crop(8)}, lists()), "accepted");
}

using Lists = std::map<std::string, Specs>;
std::string of_lists(const Schema& schema, const Lists& lists_of_fields) {
  return refusal([&] { make_plan(schema, Pipeline{{}, lists_of_fields, {}}, lists()); })
      .substr(0, 8);
}

TEST(ListsOfFields, MustCoverEveryFieldOfTheImage) {
  const Schema schema = {files("image"), files("mask", FieldKind::kMask), kBoxes};
  EXPECT_EQ(of_lists(schema, {{"image", {resize(8, 8)}}}), "HR0180 R") << "nobody said mask";
  EXPECT_EQ(of_lists(schema, {{"image", {resize(8, 8)}}, {"mask", {resize(8, 8)}}}), "HR0180 R")
      << "nobody said boxes";
  EXPECT_EQ(of_lists(schema, {{"image", {resize(8, 8)}}, {"mask", {resize(8, 8)}}, {"boxes", {}}}),
            "accepted");
}

// Each list has its own draws, so the mask could be mirrored when the image is not.
TEST(ListsOfFields, DoNotShareDraws) {
  const Schema schema = {files("image"), files("mask", FieldKind::kMask)};
  EXPECT_EQ(of_lists(schema, {{"image", {flip()}}, {"mask", {flip()}}}), "HR0180 R");
  const Spec said = spec("RandomHorizontalFlip", {}, {"image"});
  EXPECT_EQ(of_lists(schema, {{"image", {said}}, {"mask", {}}}), "accepted");
}

TEST(ListsOfFields, OfImagesMayDrawIndependently) {
  const Schema schema = {files("image"), files("other")};
  EXPECT_EQ(of_lists(schema, {{"image", {flip()}}, {"other", {flip()}}}), "accepted");
  EXPECT_EQ(of_lists(schema, {{"image", {flip()}}}), "HR0180 R") << "nobody said other";
}

TEST(BranchesOfAFork, MayDifferFromEachOtherButNotFromBoxes) {
  const Spec views = fork("image", {{"a", {crop(8), flip()}}, {"b", {crop(8)}}});
  EXPECT_EQ(refusal({files("image"), label()}, {views}), "accepted");
  EXPECT_TRUE(left_behind(kDetection, {views}));
  EXPECT_TRUE(left_behind(kDetection, {flip(), fork("image", {{"a", {}}, {"b", {}}})}));
  EXPECT_FALSE(left_behind(kDetection, {views}, delivering({"a", "b"})));
}

// A C++ substitute for a Python function: halves the width of its first field.
class Halving final : public PythonFunction {
 public:
  Halving(std::vector<std::string> inputs, PythonGeometry geometry, std::vector<Field> returns = {})
      : inputs_(std::move(inputs)), geometry_(geometry), returns_(std::move(returns)) {}
  std::string name() const override { return "halve"; }
  std::vector<std::string> inputs() const override { return inputs_; }
  std::vector<Field> returns() const override { return returns_; }
  PythonGeometry geometry() const override { return geometry_; }
  void call(std::span<PythonCall* const> calls) override {
    for (PythonCall* call : calls) {
      Shape shape = call->inputs[0].view.shape;
      shape.back() /= 2;
      PythonValue& out = call->outputs.emplace_back();
      out.owned.resize(static_cast<size_t>(element_count(shape)));
      out.view = {out.owned.data(), DType::kUInt8, std::move(shape), {}};
    }
  }

 private:
  std::vector<std::string> inputs_;
  PythonGeometry geometry_;
  std::vector<Field> returns_;
};

Spec halve(std::vector<std::string> inputs, PythonGeometry geometry,
           std::vector<Field> returns = {}) {
  return step(std::make_shared<Halving>(std::move(inputs), geometry, std::move(returns)));
}

const Schema kOpen = {pixels("image", {3, -1, -1}), kBoxes};

TEST(AFunction, KnownToMoveOnlyItsImageIsRejected) {
  EXPECT_TRUE(left_behind(kOpen, {halve({"image"}, PythonGeometry::kMoves)}));
  EXPECT_FALSE(left_behind(kOpen, {halve({"image"}, PythonGeometry::kAlone)}));
  EXPECT_FALSE(left_behind(kOpen, {halve({"image", "boxes"}, PythonGeometry::kMoves)}));
  EXPECT_FALSE(left_behind(kOpen, {halve({"boxes"}, PythonGeometry::kUnknown)}));
}

TEST(AFunction, DeclaringAnotherSizeIsRejected) {
  const Field smaller = pixels("image", {3, 4, 4});
  EXPECT_TRUE(left_behind(kOpen, {halve({"image"}, PythonGeometry::kUnknown, {smaller})}));
  EXPECT_FALSE(
      left_behind(kOpen, {halve({"image", "boxes"}, PythonGeometry::kUnknown, {smaller})}));
  const Field same = pixels("image", {3, -1, -1});
  EXPECT_FALSE(left_behind(kOpen, {halve({"image"}, PythonGeometry::kUnknown, {same})}));
}

// Halving returns only its first field, whatever it takes.
TEST(AFunction, ReturningAnotherSizeIsDetectedPerRecord) {
  const Grid grid = recipe_test::random_grid(3, 6, 8, 1);
  using Inputs = std::vector<std::string>;
  const auto returned = [&](const PlanOptions& options,
                            const Inputs& inputs = {"image"}) -> std::string {
    const PlanPtr plan = plan_of(kOpen, {halve(inputs, PythonGeometry::kUnknown)}, options);
    const Read read = Read().pixels(grid).tensor<float>({1, 2, 3, 4}, {1, 4});
    Record record;
    Renderer renderer;
    EXPECT_TRUE(plan->begin(read.data(), record, renderer));
    Result<PythonCall> call = plan->python_call(0, record, renderer, 0, 0);
    PythonCall* const pointer = &*call;
    plan->steps()[0].function->call({&pointer, 1});
    const Result<void> back = plan->python_return(0, *call, record);
    return back ? "accepted" : std::string(back.error().code->id) + " " + back.error().what;
  };
  EXPECT_EQ(returned(lists()),
            "HR0180 halve(image) moves \"image\" but would leave \"boxes\" (boxes) unchanged");
  EXPECT_EQ(returned(delivering({"image"})), "accepted");
  EXPECT_EQ(
      returned(lists(), {"image", "boxes"}),
      "HR0180 halve(image, boxes) moves \"image\" but would leave \"boxes\" (boxes) unchanged");
  EXPECT_EQ(returned(delivering({"image"}), {"image", "boxes"}), "accepted") << "only looked at";
}

}  // namespace
}  // namespace headrace::plan_test
