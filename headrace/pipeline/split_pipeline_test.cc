// SPDX-License-Identifier: Apache-2.0
#include "headrace/pipeline/split_pipeline.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

using Given = std::map<std::string, ParamValue>;

Spec spec(const std::string& name, const Given& given = {}, std::vector<std::string> fields = {}) {
  return {name, given, std::move(fields), {}};
}

std::string names(const std::vector<Spec>& list) {
  std::string out;
  for (const Spec& each : list) out += (out.empty() ? "" : " ") + each.name;
  return out;
}

const Spec kResize = spec("Resize", {{"size", int64_t{8}}});
const Spec kCenter = spec("CenterCrop", {{"size", int64_t{8}}});
const Spec kCrop = spec("RandomCrop", {{"size", int64_t{4}}});
const Spec kFlip = spec("RandomHorizontalFlip");
const Spec kFloat = spec("ToDtype", {{"dtype", DType::kFloat32}, {"scale", true}});
const Spec kBytes = spec("ToDtype", {{"dtype", DType::kUInt8}});

Spec list_in_list(const std::string& name, const std::vector<Spec>& list) {
  return spec(name, {{"transforms", std::vector<Branch>{{"", list}}}});
}

void expect_split(const std::vector<Spec>& list, const std::string& first, const std::string& rest,
                  const std::string& ends_at) {
  const SplitPipeline split = split_pipeline({list, {}, {}});
  EXPECT_EQ(names(split.first.transforms), first);
  EXPECT_EQ(names(split.rest.transforms), rest);
  EXPECT_EQ(split.ends_at, ends_at);
}

TEST(SplitPipeline, SplitsAtTheFirstStepThatIsRandomOrNotUint8) {
  expect_split({}, "", "", "");
  expect_split({kResize, kCenter}, "Resize CenterCrop", "", "");
  expect_split({kResize, kCrop, kCenter}, "Resize", "RandomCrop CenterCrop", "RandomCrop");
  expect_split({kFlip, kResize}, "", "RandomHorizontalFlip Resize", "RandomHorizontalFlip");
  expect_split({kResize, kFloat}, "Resize", "ToDtype", "ToDtype");
  expect_split({kBytes, kResize, kFloat}, "ToDtype Resize", "ToDtype", "ToDtype");
}

TEST(SplitPipeline, FlattensNestedListsButNotRandomChoices) {
  expect_split({list_in_list("Compose", {kResize, kCrop}), kFlip}, "Resize",
               "RandomCrop RandomHorizontalFlip", "RandomCrop");
  expect_split({list_in_list("RandomApply", {kResize})}, "", "RandomApply", "RandomApply");
  Spec narrowed = list_in_list("Compose", {kResize});
  narrowed.fields = {"image"};
  expect_split({narrowed}, "", "Compose", "Compose");
}

TEST(SplitPipeline, SplitsTheListOfEachField) {
  const SplitPipeline split =
      split_pipeline({{}, {{"image", {kResize, kCrop}}, {"mask", {kCenter}}}, {"text"}});
  EXPECT_EQ(names(split.first.by_field.at("image")), "Resize");
  EXPECT_EQ(names(split.rest.by_field.at("image")), "RandomCrop");
  EXPECT_EQ(names(split.first.by_field.at("mask")), "CenterCrop");
  EXPECT_EQ(names(split.rest.by_field.at("mask")), "");
  EXPECT_EQ(split.first.dropped, std::vector<std::string>{"text"});
  EXPECT_TRUE(split.rest.dropped.empty());
}

}  // namespace
}  // namespace headrace
