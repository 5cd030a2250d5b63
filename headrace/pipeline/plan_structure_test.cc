// SPDX-License-Identifier: Apache-2.0
// Lists of transforms that apply to some records only, in plans.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "headrace/pipeline/plan_test_records.h"

namespace headrace::plan_test {
namespace plan_structure_test {

using Lists = std::vector<Specs>;

Spec taken(const std::string& name, const Lists& lists, Given given = {}) {
  std::vector<Branch> branches;
  for (const Specs& list : lists) branches.push_back({"", list});
  given["transforms"] = branches;
  return spec(name, given);
}
Spec choice(const Lists& lists) { return taken("RandomChoice", lists); }
Spec order(const Lists& lists) { return taken("RandomOrder", lists); }

Spec pad(int64_t left, int64_t fill) {
  return spec("Pad", {{"padding", Ints{left, 0, 0, 0}}, {"fill", double(fill)}});
}
Spec invert() { return spec("RandomInvert", {{"p", 1.0}}); }

const Schema kPicture = {pixels("image", {1, 1, 2})};
const Read& read() {
  static const Read record =
      Read().pixels(recipe_test::make_grid(1, 1, 2, [](int, int, int x) { return 10 + x; }));
  return record;
}

// The values of the single output row.
std::vector<int> row_of(const PlanPtr& plan, int64_t position) {
  const Grid grid = Processed(plan, read(), position).grid();
  std::vector<int> row;
  for (int x = 0; x < grid.width; ++x) row.push_back(static_cast<int>(grid.at(0, 0, x)));
  return row;
}

std::map<std::vector<int>, int> rows_of(const PlanPtr& plan, int positions = 300) {
  std::map<std::vector<int>, int> rows;
  for (int position = 0; position < positions; ++position) ++rows[row_of(plan, position)];
  return rows;
}

TEST(RandomChoice, AppliesOneListToEachRecord) {
  const auto rows =
      rows_of(plan_of(kPicture, {choice({{invert()}, {pad(1, 1), pad(1, 2)}, {}})}, lists()));
  ASSERT_EQ(rows.size(), 3u);
  for (const std::vector<int>& row : {std::vector<int>{245, 244}, {2, 1, 10, 11}, {10, 11}}) {
    EXPECT_NEAR(rows.at(row), 100, 40);
  }
}

TEST(RandomOrder, AppliesAllListsInARandomOrder) {
  const auto rows = rows_of(
      plan_of(kPicture, {order({{pad(1, 1)}, {pad(1, 2), pad(1, 3)}, {invert()}})}, lists()));
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_TRUE(rows.contains({3, 2, 1, 245, 244}));        // inverted first, then 1, then the list
  EXPECT_TRUE(rows.contains({254, 252, 253, 245, 244}));  // the list, 1, inverted
}

TEST(SomeOf, AppliesDistinctListsInTheirOriginalOrder) {
  const Lists three = {{pad(1, 1)}, {pad(1, 2)}, {pad(1, 3)}};
  const auto rows =
      rows_of(plan_of(kPicture, {taken("SomeOf", three, {{"n", int64_t{2}}})}, lists()));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_TRUE(rows.contains({3, 1, 10, 11}));
  const auto again = rows_of(
      plan_of(kPicture, {taken("SomeOf", three, {{"n", int64_t{2}}, {"replace", true}})}, lists()),
      900);
  EXPECT_EQ(again.size(), 9u);
  EXPECT_TRUE(again.contains({1, 1, 10, 11}));
  EXPECT_TRUE(again.contains({1, 3, 10, 11}));
}

TEST(OneOf, IsAppliedWithItsProbability) {
  const auto rows = rows_of(
      plan_of(kPicture, {taken("OneOf", {{pad(1, 1)}, {pad(1, 2)}}, {{"p", 0.25}})}, lists()),
      2000);
  EXPECT_NEAR(rows.at({10, 11}), 1500, 100);
  EXPECT_NEAR(rows.at({1, 10, 11}), 250, 75);
}

TEST(Choices, NestInEachOtherAndInRandomApply) {
  const Spec inner = order({{pad(1, 1)}, {choice({{pad(1, 2)}, {maybe(0.5, {pad(1, 3)})}})}});
  const PlanPtr plan = plan_of(kPicture, {maybe(0.9, {choice({{inner}, {}})}), pad(1, 9)}, lists());
  const auto rows = rows_of(plan, 1000);
  const std::set<std::vector<int>> expected = {{9, 10, 11},       {9, 1, 10, 11},
                                               {9, 1, 2, 10, 11}, {9, 2, 1, 10, 11},
                                               {9, 1, 3, 10, 11}, {9, 3, 1, 10, 11}};
  std::set<std::vector<int>> found;
  for (const auto& [row, count] : rows) found.insert(row);
  EXPECT_EQ(found, expected);
}

TEST(Choices, AddingAListDoesNotChangeOtherDraws) {
  const auto plan = [](Lists lists) {
    return plan_of(kPicture, {choice(lists), order(lists), crop(1)}, headrace::plan_test::lists());
  };
  const Lists few = {{flip()}, {spec("RandomInvert")}};
  Lists more = few;
  more.push_back({flip(), crop(2)});
  const PlanPtr a = plan(few), b = plan(more);
  const auto flips = keys_of(*a, "RandomHorizontalFlip");
  const auto with_more = keys_of(*b, "RandomHorizontalFlip");
  ASSERT_EQ(flips.size(), 2u);
  ASSERT_EQ(with_more.size(), 4u);
  EXPECT_EQ(flips[0], with_more[0]);
  EXPECT_EQ(flips[1], with_more[2]);
  EXPECT_EQ(std::set<uint64_t>(with_more.begin(), with_more.end()).size(), 4u);
  EXPECT_EQ(keys_of(*a, "RandomInvert"), keys_of(*b, "RandomInvert"));
  EXPECT_EQ(keys_of(*a, "RandomCrop").back(), keys_of(*b, "RandomCrop").back());
}

TEST(Choices, ShapesAreKnownIfAllChoicesAgree) {
  const auto what = [](const Specs& steps) {
    return text_of(output_of(*plan_of({files("image")}, steps, lists()), "image").state);
  };
  EXPECT_EQ(what({choice({{resize(8, 8)}, {spec("CenterCrop", {{"size", int64_t{8}}})}})}),
            "uint8 (3, 8, 8)");
  EXPECT_EQ(what({choice({{resize(8, 8)}, {resize(8, 9)}})}), "uint8 (3, 8, ?)");
  EXPECT_EQ(what({choice({{resize(8, 8), to_float()}, {resize(8, 8), to_float()}})}),
            "float32 (3, 8, 8)");
  EXPECT_EQ(what({order({{resize(8, 8)}, {flip()}})}), "uint8 (3, 8, 8)");
  EXPECT_EQ(what({order({{resize(8, 8)}, {crop(4)}})}), "uint8 (3, ?, ?)");
  EXPECT_EQ(
      what({resize(8, 8), taken("SomeOf", {{flip()}, {crop(4)}, {invert()}}, {{"n", int64_t{2}}})}),
      "uint8 (3, ?, ?)");
}

TEST(Choices, ChoicesOfDifferentDtypesAreRejected) {
  EXPECT_EQ(refusal(kPicture, {choice({{to_float()}, {}})}),
            "HR0115 [RandomChoice] \"image\" would be float32 (1, 1, 2) in some records and uint8 "
            "(1, 1, 2) in the others | move what changes the dtype out of the RandomChoice");
  EXPECT_EQ(refusal(kPicture, {order({{to_float()}, {flip()}})}).substr(0, 20),
            "HR0115 [RandomOrder]");
  EXPECT_EQ(refusal(kPicture, {choice({{fork("image", {{"a", {}}})}, {}})}).substr(0, 13),
            "HR0116 [Fork]");
}

// Each list must accept what another one produces: a step for three channels after one that makes
// gray.
TEST(RandomOrder, EachListIsPlannedForTheResultOfTheOthers) {
  const Spec gray = spec("Grayscale");
  const Spec three = spec("Pad", {{"padding", int64_t{1}}, {"fill", Floats{1, 2, 3}}});
  const Schema colors = {pixels("image", {3, 4, 4})};
  EXPECT_EQ(refusal(colors, {three, gray}), "accepted");
  EXPECT_EQ(refusal(colors, {order({{three}, {gray}})}, lists()).substr(0, 12), "HR0512 [Pad]");
}

TEST(Choices, UnusedStepsAreRemovedWithTheirSelection) {
  const Schema two = {pixels("image", {3, 4, 4}), pixels("other", {3, 4, 4})};
  PlanOptions options;
  options.fields = {"other"};
  const Spec of_image = choice({{spec("RandomInvert", {}, {"image"})}, {}});
  const Spec of_both =
      choice({{spec("RandomInvert", {}, {"image"})}, {spec("RandomInvert", {}, {"other"})}});
  EXPECT_EQ(plan_of(two, {of_image}, options)->steps().size(), 0u);
  const PlanPtr plan = plan_of(two, {of_image, of_both, of_image}, options);
  ASSERT_EQ(plan->steps().size(), 4u);  // select, or, invert, end
  int changed = 0;
  const Grid grid = recipe_test::make_grid(3, 4, 4, [](int, int, int) { return 7; });
  for (int64_t position = 0; position < 400; ++position) {
    changed += Processed(plan, Read().pixels(grid).pixels(grid), position).grid("other") != grid;
  }
  EXPECT_NEAR(changed, 100, 40);  // half of the half that gets there
}

TEST(Choices, AreShownInThePlan) {
  const std::string text =
      plan_of(kPicture, {choice({{invert(), flip()}, {pad(1, 2)}}), pad(1, 1)}, lists())->text();
  for (const char* line : {"1     RandomChoice(1 of 2)", "2       RandomInvert(p=1)", "4     or",
                           "5       Pad(", "6     end", "7     Pad("}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

}  // namespace plan_structure_test
}  // namespace headrace::plan_test
