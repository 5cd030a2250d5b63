// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/structure/choices.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

using Lists = std::vector<Branch>;
using Numbers = std::vector<double>;

const Lists kThree = {{"", {spec("Pad")}}, {"", {spec("Resize"), spec("Pad")}}, {"", {}}};

std::string refused(const std::string& name, const Given& given) {
  return refusal([&] { written(name, given); });
}

TEST(Choices, AreParsedFromTheirArguments) {
  const Given three{{"transforms", kThree}, {"weights", Numbers{1, 0, 3}}};
  EXPECT_EQ(written("RandomChoice", {{"transforms", kThree}, {"p", Numbers{0.25, 0.5, 0.25}}}),
            "RandomChoice 1 of 0.25[Pad] 0.5[Resize Pad] 0.25[]");
  EXPECT_EQ(written("RandomOrder", {{"transforms", kThree}}),
            "RandomOrder 3 in any order of 1[Pad] 1[Resize Pad] 1[]");
  EXPECT_EQ(written("OneOf", three), "p=0.5 [OneOf]");
  Given always = three;
  always["p"] = 1.0;
  EXPECT_EQ(written("OneOf", always), "OneOf 1 of 1[Pad] 0[Resize Pad] 3[]");
  always["n"] = int64_t{2};
  EXPECT_EQ(written("SomeOf", always), "SomeOf 2 of 1[Pad] 0[Resize Pad] 3[]");
  always["replace"] = true;
  EXPECT_EQ(written("SomeOf", always),
            "SomeOf 1 of 1[Pad] 0[Resize Pad] 3[]SomeOf 1 of 1[Pad] 0[Resize Pad] 3[]");
}

TEST(Choices, InvalidProbabilitiesAreRejected) {
  const auto choice = [](const Numbers& p) {
    return refused("RandomChoice", {{"transforms", kThree}, {"p", p}});
  };
  EXPECT_EQ(choice({0.5, 0.5}),
            "HR0532 [RandomChoice] p has 2 values for 3 entries in the list of transforms");
  EXPECT_EQ(choice({0.5, 0.5, 0.5}),
            "HR0532 [RandomChoice] p sums to 1.5, not to 1 | divide each by the sum");
  EXPECT_EQ(choice({1.5, -0.5, 0}), "HR0532 [RandomChoice] p must not be negative (got -0.5)");
  EXPECT_EQ(choice({0, 0, 0}), "HR0532 [RandomChoice] p sums to 0 | at least one must be positive");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(choice({1, nan, 0}), "accepted");
  EXPECT_NE(choice({std::numeric_limits<double>::infinity(), 0, 0}), "accepted");
  EXPECT_NE(choice({1e308, 1e308, 1e308}), "accepted");
  EXPECT_EQ(
      refused("SomeOf", {{"transforms", kThree}, {"weights", Numbers{1, 0, 3}}, {"n", int64_t{3}}}),
      "HR0532 [SomeOf] n is 3, but only 2 of the transforms can be drawn | pass replace=True to "
      "allow repetitions");
}

TEST(Choices, AnEmptyListIsRejected) {
  for (const char* name : {"RandomChoice", "RandomOrder", "OneOf", "SomeOf"}) {
    EXPECT_EQ(refused(name, {{"transforms", Lists{}}}),
              "HR0104 [" + std::string(name) + "] transforms must have at least 1 value (got 0)");
  }
}

TEST(Selection, DrawsByWeight) {
  const Selection two{.weights = {1, 0, 3, 4}, .count = 2};
  std::map<std::vector<int>, int> found;
  constexpr int kDraws = 24000;
  for (int i = 0; i < kDraws; ++i) ++found[two.draw(Draws(1, 2, uint64_t(i), 3))];
  ASSERT_EQ(found.size(), 3u);
  // Two successive draws, each in proportion to the remaining weights.
  EXPECT_NEAR(double(found[{0, 2}]) / kDraws, 1 / 8.0 * 3 / 7 + 3 / 8.0 * 1 / 5, 0.01);
  EXPECT_NEAR(double(found[{0, 3}]) / kDraws, 1 / 8.0 * 4 / 7 + 4 / 8.0 * 1 / 4, 0.01);
  EXPECT_NEAR(double(found[{2, 3}]) / kDraws, 3 / 8.0 * 4 / 5 + 4 / 8.0 * 3 / 4, 0.01);
}

TEST(Selection, ShufflesUniformly) {
  const Selection all{.weights = {1, 1, 1, 1}, .count = 4, .shuffled = true};
  std::map<std::vector<int>, int> found;
  for (int i = 0; i < 24000; ++i) ++found[all.draw(Draws(1, 2, uint64_t(i), 3))];
  ASSERT_EQ(found.size(), 24u);
  for (const auto& [order, count] : found) EXPECT_NEAR(count, 1000, 150);
}

}  // namespace
}  // namespace headrace::op_test
