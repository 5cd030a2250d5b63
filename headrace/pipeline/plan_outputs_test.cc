// SPDX-License-Identifier: Apache-2.0
// The outputs of a plan, and that no work is done for anything else.
#include <gtest/gtest.h>

#include "headrace/pipeline/plan_test_records.h"

namespace headrace::plan_test {
namespace {

const Schema kSchema = {files("image"),  files("mask", FieldKind::kMask), label(),
                        text("caption"), tensor("boxes", {-1, 4}),        tensor("scores", {10})};
PlanOptions fields(std::vector<std::string> names, Ragged ragged = Ragged::kRefuse) {
  PlanOptions options;
  options.fields = std::move(names);
  options.ragged = ragged;
  return options;
}

TEST(Outputs, AreTheSourcesFieldsUnlessNamed) {
  const PlanPtr plan = plan_of({pixels("image", {3, 8, 8}), label()}, {});
  ASSERT_EQ(plan->outputs().size(), 2u);
  EXPECT_EQ(plan->outputs()[0].bytes_per_record, 192u);
  EXPECT_EQ(plan->outputs()[1].bytes_per_record, 8u);
  EXPECT_EQ(plan->outputs()[1].state.shape, Shape{});
}

TEST(Outputs, IdKeyAndValidAreDeliveredOnRequest) {
  const PlanPtr plan = plan_of(kSchema, {}, fields({"key", "label", "id", "valid"}));
  ASSERT_EQ(plan->outputs().size(), 4u);
  EXPECT_EQ(plan->outputs()[0].origin, OutputOrigin::kKey);
  EXPECT_TRUE(plan->outputs()[0].as_list);
  EXPECT_EQ(plan->outputs()[0].bytes_per_record, 0u);
  EXPECT_EQ(plan->outputs()[2].state.dtype, DType::kInt64);
  EXPECT_EQ(plan->outputs()[2].bytes_per_record, 8u);
  EXPECT_EQ(plan->outputs()[3].state.dtype, DType::kBool);
  EXPECT_EQ(plan->outputs()[3].bytes_per_record, 1u);
}

TEST(Outputs, UnknownNamesSuggestTheNearest) {
  EXPECT_EQ(refusal(kSchema, {}, fields({"lable"})),
            "HR0112 fields= names \"lable\", which does not exist at the end | did you mean "
            "\"label\"?");
  EXPECT_EQ(refusal(kSchema, {}, fields({"label", "label"})),
            "HR0112 fields= names \"label\" more than once");
  EXPECT_EQ(
      refusal({files("image")}, {fork("image", {{"view", {crop(8)}}})}, fields({"image"})),
      "HR0112 fields= names \"image\", which does not exist at the end | [Fork] has replaced it "
      "by view (image)");
}

TEST(Outputs, TextIsAlwaysAList) {
  const PlanPtr plan = plan_of(kSchema, {}, fields({"caption"}));
  EXPECT_TRUE(plan->outputs()[0].as_list);
}

TEST(Outputs, ErrorsForRaggedFieldsNameTheCauseAndTheFixes) {
  const std::string ways =
      " | add Resize((height, width)), CenterCrop(size) or RandomCrop(size), or use Loader(..., "
      "ragged=\"list\")";
  EXPECT_EQ(refusal(kSchema, {}, fields({"image"})),
            "HR0114 \"image\" is uint8 (3, ?, ?), left open by the source, whose records differ in "
            "size" +
                ways);
  EXPECT_EQ(
      refusal(kSchema, {spec("Resize", {{"size", int64_t{256}}})}, fields({"image"})),
      "HR0114 \"image\" is uint8 (3, ?, ?), left open by Resize, which fixes one edge and keeps "
      "the aspect ratio" +
          ways);
  EXPECT_EQ(
      refusal(kSchema, {spec("Resize", {{"size", int64_t{256}}}), flip()}, fields({"mask"})),
      "HR0114 \"mask\" is uint8 (1, ?, ?), left open by Resize, which fixes one edge and keeps "
      "the aspect ratio" +
          ways);
  EXPECT_EQ(refusal(kSchema, {}, fields({"boxes"})),
            "HR0114 \"boxes\" is float32 (?, 4), left open by the source, whose records differ in "
            "size | use Loader(..., ragged=\"list\"), or exclude the field with fields=");
  const PlanPtr plan = plan_of(kSchema, {}, fields({"image", "boxes", "scores"}, Ragged::kList));
  EXPECT_TRUE(plan->outputs()[0].as_list);
  EXPECT_TRUE(plan->outputs()[1].as_list);
  EXPECT_FALSE(plan->outputs()[2].as_list);
  EXPECT_EQ(plan->outputs()[2].bytes_per_record, 40u);
}

TEST(DeadSteps, AreNotExecutedAndTheirFieldsAreNotRead) {
  const Specs transforms = {to_float(), crop(8), maybe(0.5, {flip()}), normalize()};
  const PlanPtr masks = plan_of(kSchema, transforms, fields({"mask", "label"}));
  ASSERT_EQ(masks->steps().size(), 3u);  // no ToDtype, no Normalize: they act on the image
  EXPECT_EQ(masks->steps()[0].fields.size(), 1u);
  EXPECT_EQ(masks->steps()[1].jump, 3);
  EXPECT_EQ(masks->wanted(), (std::vector<bool>{false, true, true, false, false, false}));
  const PlanPtr labels = plan_of(kSchema, transforms, fields({"label"}));
  EXPECT_TRUE(labels->steps().empty());
  EXPECT_EQ(labels->wanted(), (std::vector<bool>{false, false, true, false, false, false}));
}

TEST(DeadSteps, DoNotChangeOtherDraws) {
  const Schema schema = {pixels("image", {3, 9, 9}), pixels("mask", {1, 9, 9}, FieldKind::kMask)};
  const Specs transforms = {flip(), crop(4), maybe(0.5, {flip()})};
  Read read;
  read.pixels(recipe_test::random_grid(3, 9, 9, 1)).pixels(recipe_test::random_grid(1, 9, 9, 2));
  for (int64_t position = 0; position < 20; ++position) {
    Processed both(plan_of(schema, transforms), read, position);
    Processed one(plan_of(schema, transforms, fields({"mask"})), read, position);
    EXPECT_EQ(both.grid("mask"), one.grid("mask"));
  }
}

TEST(DeadSteps, UnusedBranchesOfAForkAreNotCopied) {
  const PlanPtr plan = plan_of(
      {files("image")}, {fork("image", {{"a", {crop(8)}}, {"b", {crop(4)}}})}, fields({"b"}));
  ASSERT_EQ(plan->steps().size(), 2u);
  EXPECT_EQ(plan->steps()[1].label, "RandomCrop(size=4, pad_if_needed=True)");
}

}  // namespace
}  // namespace headrace::plan_test
