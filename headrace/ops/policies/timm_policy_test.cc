// SPDX-License-Identifier: Apache-2.0
// The arguments of timm 1.0.31's operations at a level, printed from its tables; tests/test_timm.py
// compares pixels with it where it is installed.
#include "headrace/ops/policies/timm_policy.h"

#include <gtest/gtest.h>

#include <cmath>

namespace headrace {
namespace {

using Kind = TimmStep::Kind;

struct Arguments {
  Kind kind;
  bool negated;
  double at[5];
};

constexpr double kLevels[] = {0, 2.6, 7.3, 10, 13.7};
constexpr Arguments kArguments[] = {
    {Kind::kRotate, false, {0, 7.800000000000001, 21.9, 30, 41.099999999999994}},
    {Kind::kRotate, true, {0, -7.800000000000001, -21.9, -30, -41.099999999999994}},
    {Kind::kPosterize, false, {0, 1, 2, 4, 5}},
    {Kind::kPosterize, true, {0, 1, 2, 4, 5}},
    {Kind::kPosterizeIncreasing, false, {4, 3, 2, 0, 0}},
    {Kind::kPosterizeIncreasing, true, {4, 3, 2, 0, 0}},
    {Kind::kPosterizeOriginal, false, {4, 5, 6, 8, 8}},
    {Kind::kPosterizeOriginal, true, {4, 5, 6, 8, 8}},
    {Kind::kSolarize, false, {0, 66, 186, 256, 256}},
    {Kind::kSolarize, true, {0, 66, 186, 256, 256}},
    {Kind::kSolarizeIncreasing, false, {256, 190, 70, 0, 0}},
    {Kind::kSolarizeIncreasing, true, {256, 190, 70, 0, 0}},
    {Kind::kSolarizeAdd, false, {0, 28, 80, 110, 128}},
    {Kind::kSolarizeAdd, true, {0, 28, 80, 110, 128}},
    {Kind::kColor, false, {0.1, 0.5680000000000001, 1.4140000000000001, 1.9000000000000001, 2.566}},
    {Kind::kColor, true, {0.1, 0.5680000000000001, 1.4140000000000001, 1.9000000000000001, 2.566}},
    {Kind::kContrastIncreasing, false, {1, 1.234, 1.657, 1.9, 2.2329999999999997}},
    {Kind::kContrastIncreasing, true, {1, 0.766, 0.34299999999999997, 0.1, 0.1}},
    {Kind::kShearX, false, {0, 0.078, 0.219, 0.3, 0.411}},
    {Kind::kShearX, true, {0, -0.078, -0.219, -0.3, -0.411}},
    {Kind::kTranslateY, false, {0, 0.117, 0.3285, 0.45, 0.6164999999999999}},
    {Kind::kTranslateY, true, {0, -0.117, -0.3285, -0.45, -0.6164999999999999}},
    {Kind::kDesaturate, false, {0.5, 0.37, 0.135, 0, 0}},
    {Kind::kDesaturate, true, {0.5, 0.37, 0.135, 0, 0}},
    {Kind::kGaussianBlur, false, {0.1, 0.594, 1.487, 2, 2}},
    {Kind::kGaussianBlur, true, {0.1, 0.594, 1.487, 2, 2}},
};

TEST(TimmPolicy, LevelsHaveTheSameMeaningAsInTimm) {
  for (const Arguments& row : kArguments) {
    for (size_t i = 0; i < std::size(kLevels); ++i) {
      EXPECT_EQ(timm_argument(row.kind, kLevels[i], row.negated, 0.45, 0), row.at[i])
          << static_cast<int>(row.kind) << " at " << kLevels[i];
    }
  }
}

TEST(TimmPolicy, StringsAreParsed) {
  const TimmPolicy rand = timm_policy("T", "rand-m9-n3-mstd0.5-mmax12-inc1-p0.25");
  EXPECT_EQ(rand.form, TimmPolicy::Form::kRand);
  EXPECT_EQ(rand.layers, 3);
  EXPECT_EQ(rand.deviation, 0.5);
  EXPECT_EQ(rand.most, 12);
  EXPECT_TRUE(rand.weights.empty());
  ASSERT_EQ(rand.steps.size(), 15u);
  EXPECT_EQ(rand.steps[4].kind, Kind::kPosterizeIncreasing);
  EXPECT_EQ(rand.steps[4].p, 0.25);
  EXPECT_EQ(rand.steps[4].magnitude, 9);

  const TimmPolicy plain = timm_policy("T", "rand");
  EXPECT_EQ(plain.layers, 2);
  EXPECT_EQ(plain.deviation, 0);
  EXPECT_EQ(plain.most, 10);
  EXPECT_EQ(plain.steps[4].kind, Kind::kPosterize);
  EXPECT_EQ(plain.steps[4].p, 0.5);
  EXPECT_EQ(plain.steps[4].magnitude, 10);
  EXPECT_TRUE(std::isinf(timm_policy("T", "rand-mstd101").deviation));
  EXPECT_EQ(timm_policy("T", "rand-mmax0").most, 10);
  EXPECT_EQ(timm_policy("T", "rand-tweights").weights.size(), 15u);
  EXPECT_EQ(timm_policy("T", "rand-t3aw").weights.size(), 14u);
  EXPECT_EQ(timm_policy("T", "rand-t3a").steps.size(), 3u);

  const TimmPolicy mix = timm_policy("T", "augmix-m5-w4-d2");
  EXPECT_EQ(mix.form, TimmPolicy::Form::kAugMix);
  EXPECT_EQ(mix.width, 4);
  EXPECT_EQ(mix.depth, 2);
  EXPECT_TRUE(std::isinf(mix.deviation));
  ASSERT_EQ(mix.steps.size(), 13u);
  EXPECT_EQ(mix.steps[1].magnitude, 5);
  EXPECT_EQ(mix.steps[1].p, 1);

  const TimmPolicy found = timm_policy("T", "original-mstd0.5");
  EXPECT_EQ(found.form, TimmPolicy::Form::kAuto);
  EXPECT_EQ(found.deviation, 0.5);
  EXPECT_EQ(found.pair, 2);
  ASSERT_EQ(found.steps.size(), 50u);
  EXPECT_EQ(found.steps[0].kind, Kind::kPosterizeOriginal);
  EXPECT_EQ(timm_policy("T", "originalr").steps[0].kind, Kind::kPosterizeIncreasing);
  EXPECT_EQ(timm_policy("T", "v0r").steps.size(), 50u);
  EXPECT_EQ(timm_policy("T", "3a").pair, 1);
}

}  // namespace
}  // namespace headrace
