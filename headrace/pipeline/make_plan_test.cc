// SPDX-License-Identifier: Apache-2.0
// From the user's list to steps: the fields of each, errors for invalid lists, and the keys of
// random draws.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "headrace/pipeline/plan_test_records.h"

namespace headrace::plan_test {
namespace {

const Schema kFolder = {files("image"), label()};
const Schema kSegmentation = {files("image"), files("mask", FieldKind::kMask), label()};

std::vector<std::string> fields_of(const Plan& plan, size_t step) {
  std::vector<std::string> names;
  for (int field : plan.steps()[step].fields) names.push_back(plan.inputs()[field].name);
  return names;
}
using Names = std::vector<std::string>;

TEST(Fields, GeometryActsOnImagesAndMasksButConversionOnlyOnImages) {
  const PlanPtr plan = plan_of(kSegmentation, {crop(8), flip(), to_float(), normalize()});
  ASSERT_EQ(plan->steps().size(), 4u);
  EXPECT_EQ(fields_of(*plan, 0), (Names{"image", "mask"}));
  EXPECT_EQ(fields_of(*plan, 1), (Names{"image", "mask"}));
  EXPECT_EQ(fields_of(*plan, 2), (Names{"image"}));
  EXPECT_EQ(fields_of(*plan, 3), (Names{"image"}));
  EXPECT_EQ(output_of(*plan, "mask").state.dtype, DType::kUInt8);
}

TEST(Fields, AreNarrowedByName) {
  const PlanPtr plan =
      plan_of(kSegmentation, {spec("RandomCrop", {{"size", int64_t{8}}}, {"image"})}, lists());
  EXPECT_EQ(fields_of(*plan, 0), (Names{"image"}));
  const PlanPtr nested = plan_of(
      kSegmentation,
      {spec("Compose", {{"transforms", std::vector<Branch>{{"", {crop(8), flip()}}}}}, {"mask"})},
      lists());
  EXPECT_EQ(fields_of(*nested, 0), (Names{"mask"}));
  EXPECT_EQ(fields_of(*nested, 1), (Names{"mask"}));
}

TEST(Fields, UnknownNamesSuggestTheNearest) {
  EXPECT_EQ(refusal(kSegmentation, {spec("RandomHorizontalFlip", {}, {"imgae"})}),
            "HR0111 there is no field \"imgae\" here | did you mean \"image\"?");
  EXPECT_EQ(
      refusal(kFolder, {spec("RandomHorizontalFlip", {}, {"boxes"})}),
      "HR0111 there is no field \"boxes\" here | the fields are image (image), label (label)");
}

TEST(Fields, OfAWrongKindAreRejected) {
  EXPECT_EQ(refusal(kFolder, {spec("RandomHorizontalFlip", {}, {"label"})}),
            "HR0511 \"label\" is a label field, and the transform works on images and masks");
  EXPECT_EQ(refusal({label()}, {flip()}),
            "HR0113 [RandomHorizontalFlip] does not act on any of these fields: label (label)");
}

TEST(Transforms, UnknownNamesSuggestTheNearest) {
  EXPECT_EQ(refusal(kFolder, {spec("RandomHorizontlFlip")}),
            "HR0110 there is no transform \"RandomHorizontlFlip\" | did you mean "
            "\"RandomHorizontalFlip\"?");
}

TEST(Transforms, OfTorchvisionWithoutEffectHereAreAccepted) {
  const Branch list{"", {spec("ToImage"), crop(8)}};
  const PlanPtr plan =
      plan_of(kFolder, {spec("Compose", {{"transforms", std::vector<Branch>{list}}})});
  EXPECT_EQ(plan->steps().size(), 1u);
  EXPECT_EQ(plan->steps()[0].label, "RandomCrop(size=8, pad_if_needed=True)");
}

TEST(Transforms, AnInvalidOrderIsRejected) {
  EXPECT_EQ(
      refusal(kFolder, {crop(8), normalize(), to_float()}),
      "HR0510 [Normalize] works on floats, but \"image\" is uint8 here | put ToDtype(float32, "
      "scale=True) before it");
}

TEST(Transforms, AreLocatedInTheListIfRejected) {
  const auto note = [](const Specs& transforms) -> std::string {
    try {
      plan_of(kFolder, transforms);
    } catch (const Exception& exception) {
      return exception.error().note;
    }
    return "accepted";
  };
  EXPECT_EQ(note({crop(8), flip(), normalize()}), "transform 3 of the list");
  EXPECT_EQ(note({crop(8), fork("image", {{"view1", {}}, {"view2", {flip(), crop(0)}}})}),
            "transform 2 of the list of view2");
  EXPECT_EQ(note({crop(8), maybe(0.5, {normalize()})}), "transform 1 of the list of RandomApply#0");
}

TEST(Shapes, ArePropagatedFromStepToStep) {
  const PlanPtr plan =
      plan_of({pixels("image", {1, 28, 28})},
              {spec("Pad", {{"padding", Ints{2, 0}}}), resize(10, 12), to_float()});
  EXPECT_EQ(plan->steps()[0].after[0].shape, (Shape{1, 28, 32}));
  EXPECT_EQ(plan->steps()[1].after[0].shape, (Shape{1, 10, 12}));
  EXPECT_EQ(output_of(*plan, "image").state.dtype, DType::kFloat32);
  EXPECT_EQ(output_of(*plan, "image").bytes_per_record, 10u * 12 * 4);
}

TEST(RandomApply, MustNotChangeTheDtype) {
  EXPECT_EQ(
      refusal(kFolder, {crop(8), maybe(0.5, {to_float()})}),
      "HR0115 [RandomApply] \"image\" would be float32 (3, 8, 8) in some records and uint8 (3, "
      "8, 8) in the others | move what changes the dtype out of the RandomApply");
  EXPECT_EQ(refusal(kFolder, {crop(8), maybe(1, {to_float()})}), "accepted");
}

TEST(RandomApply, MakesAChangedShapeUnknown) {
  EXPECT_EQ(
      refusal(kFolder, {resize(8, 8), maybe(0.5, {resize(8, 9)})}),
      "HR0114 \"image\" is uint8 (3, 8, ?), left open by RandomApply(p=0.5), since it applies to "
      "only some records | add Resize((height, width)), CenterCrop(size) or RandomCrop(size), or "
      "use Loader(..., ragged=\"list\")");
  EXPECT_EQ(refusal(kFolder, {resize(8, 8), maybe(0.5, {resize(9, 9), crop(8)})}), "accepted");
}

TEST(Fork, InsertsItsBranchesAtThePositionOfTheField) {
  const PlanPtr plan = plan_of(
      kFolder, {resize(16, 16),
                fork("image", {{"view1", {crop(8)}}, {"view2", {crop(4), to_float()}}}), flip()});
  ASSERT_EQ(plan->outputs().size(), 3u);
  EXPECT_EQ(plan->outputs()[0].name, "view1");
  EXPECT_EQ(plan->outputs()[1].name, "view2");
  EXPECT_EQ(plan->outputs()[2].name, "label");
  EXPECT_EQ(plan->outputs()[0].state.shape, (Shape{3, 8, 8}));
  EXPECT_EQ(plan->outputs()[1].state.dtype, DType::kFloat32);
  EXPECT_EQ(fields_of(*plan, plan->steps().size() - 1), (Names{"view1", "view2"}));
}

TEST(Fork, MayReuseTheNameAndMayNest) {
  const PlanPtr plan = plan_of(
      kFolder,
      {fork("image", {{"image", {crop(8)}},
                      {"teacher", {crop(16), fork("teacher", {{"a", {flip()}}, {"b", {}}})}}})});
  Names names;
  for (const Output& output : plan->outputs()) names.push_back(output.name);
  EXPECT_EQ(names, (Names{"image", "a", "b", "label"}));
}

TEST(Fork, ItsBranchSeesOnlyItsOwnField) {
  const Schema schema = kSegmentation;
  EXPECT_EQ(refusal(schema, {fork("image",
                                  {{"view", {spec("Pad", {{"padding", int64_t{1}}}, {"mask"})}}})}),
            "HR0111 there is no field \"mask\" here | the fields are view (image)");
  EXPECT_EQ(
      refusal(schema, {fork("image", {{"view", {}}}), spec("RandomHorizontalFlip", {}, {"image"})}),
      "HR0111 there is no field \"image\" here | [Fork] has replaced it by view (image)");
}

TEST(Fork, InvalidArgumentsAreRejected) {
  EXPECT_EQ(refusal(kFolder, {maybe(0.5, {fork("image", {{"view", {}}})})}),
            "HR0116 [Fork] cannot be inside a RandomApply");
  EXPECT_EQ(refusal(kFolder, {fork("image", {{"label", {}}})}),
            "HR0116 [Fork] there is a field \"label\" already | give the branch another name");
  EXPECT_EQ(refusal(kFolder, {fork("image", {{"a", {}}, {"a", {}}})}),
            "HR0116 [Fork] there is a field \"a\" already | give the branch another name");
  EXPECT_EQ(
      refusal(kFolder, {fork("picture", {{"a", {}}})}),
      "HR0111 there is no field \"picture\" here | the fields are image (image), label (label)");
}

TEST(ByField, EachFieldHasItsOwnListAndDroppedFieldsAreRemoved) {
  Pipeline pipeline;
  pipeline.by_field["image"] = {spec("CenterCrop", {{"size", int64_t{8}}}), to_float()};
  pipeline.by_field["mask"] = {resize(4, 4)};
  pipeline.dropped = {"label"};
  const PlanPtr plan = make_plan(kSegmentation, pipeline, {});
  ASSERT_EQ(plan->outputs().size(), 2u);
  EXPECT_EQ(output_of(*plan, "image").state.shape, (Shape{3, 8, 8}));
  EXPECT_EQ(output_of(*plan, "mask").state.shape, (Shape{1, 4, 4}));
  EXPECT_EQ(fields_of(*plan, 0), (Names{"image"}));
  EXPECT_EQ(plan->wanted(), (std::vector<bool>{true, true, false}));
  EXPECT_EQ(refusal([&] { make_plan(kFolder, {{}, {{"mask", {}}}, {}}, {}); }),
            "HR0111 there is no field \"mask\" here | the fields are image (image), label (label)");
}

TEST(Keys, DependOnBranchNameAndOrdinalAlone) {
  const Specs plain = {crop(8), flip(), crop(4)};
  const Specs more = {resize(32, 32), crop(8), spec("Pad", {{"padding", int64_t{1}}}),
                      flip(0.1),      crop(4), to_float()};
  const PlanPtr a = plan_of(kFolder, plain), b = plan_of(kFolder, more);
  EXPECT_EQ(keys_of(*a, "RandomCrop"), keys_of(*b, "RandomCrop"))
      << "a deterministic step more changes no draw";
  EXPECT_EQ(keys_of(*a, "RandomHorizontalFlip"), keys_of(*b, "RandomHorizontalFlip"));
  EXPECT_NE(keys_of(*a, "RandomCrop")[0], keys_of(*a, "RandomCrop")[1]);
}

TEST(Keys, DifferForBranchesAndNestedLists) {
  const PlanPtr plan = plan_of(
      kFolder, {crop(16), flip(), maybe(0.5, {flip()}), maybe(0.5, {flip()}),
                fork("image", {{"view1", {flip(), maybe(0.5, {flip()})}}, {"view2", {flip()}}})});
  std::set<uint64_t> keys;
  int random = 0;
  for (const Step& each : plan->steps()) {
    if (each.kind == Step::Kind::kCopy) continue;
    keys.insert(each.key);
    ++random;
  }
  EXPECT_EQ(random, 10);
  EXPECT_EQ(keys.size(), 10u);
}

TEST(Keys, OfAPerFieldListEqualTheKeysOfABranchWithThatName) {
  const PlanPtr by_field = make_plan(kFolder, {{}, {{"image", {crop(8)}}}, {}}, {});
  const PlanPtr forked = plan_of(kFolder, {fork("image", {{"image", {crop(8)}}})});
  EXPECT_EQ(keys_of(*by_field, "RandomCrop"), keys_of(*forked, "RandomCrop"));
  EXPECT_NE(keys_of(*by_field, "RandomCrop"), keys_of(*plan_of(kFolder, {crop(8)}), "RandomCrop"));
}

TEST(Sources, WithImagesOfUnknownShapeAreRejected) {
  EXPECT_EQ(refusal({pixels("image", {28, 28})}, {}),
            "HR0117 \"image\" (image) is uint8 (28, 28) in the source");
  EXPECT_EQ(refusal({pixels("image", {17, 28, 28})}, {}),
            "HR0117 \"image\" (image) is uint8 (17, 28, 28) in the source");
}

}  // namespace
}  // namespace headrace::plan_test
