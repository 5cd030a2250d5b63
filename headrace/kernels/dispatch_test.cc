// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/dispatch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace {
namespace {

TEST(Dispatch, ListsTheLevelsSlowestFirstAndSelectsTheFastest) {
  const std::vector<SimdLevel> levels = available_levels();
  ASSERT_FALSE(levels.empty());
  EXPECT_EQ(levels.front(), SimdLevel::kScalar);
  EXPECT_TRUE(std::ranges::is_sorted(levels));
  if (!std::getenv("HEADRACE_SIMD")) {
    EXPECT_EQ(simd_level(), levels.back());
  }
}

TEST(Dispatch, EveryAvailableLevelCanBeForced) {
  const SimdLevel before = simd_level();
  for (SimdLevel level : available_levels()) {
    set_simd_level(level);
    EXPECT_EQ(simd_level(), level);
  }
  set_simd_level(before);
}

TEST(Dispatch, EveryFormHasAUniqueName) {
  const SimdForm before = simd_form();
  std::set<std::string_view> names;
  for (const SimdForm form : available_forms()) {
    set_simd_form(form);
    EXPECT_EQ(simd_form(), form);
    EXPECT_EQ(slow_pdep(), form.slow_pdep);
    EXPECT_TRUE(names.insert(name_of(form)).second);
  }
  set_simd_form(before);
}

// This CPU's pdep may be fast or slow; only checks that the probe terminates and returns a valid
// answer.
TEST(Dispatch, TheProbeMeasuresPdep) {
  const SimdLevel best = available_levels().back();
  if (best != SimdLevel::kAvx2 && best != SimdLevel::kAvx512) GTEST_SKIP() << "no BMI2";
  EXPECT_GT(pdep_cost(), 0.05);
  EXPECT_LT(pdep_cost(), 10000);
}

TEST(Dispatch, TheReasonRefersToTheBestForm) {
  const SimdReason reason = simd_reason();
  EXPECT_EQ(reason.best.level, available_levels().back());
  EXPECT_EQ(reason.next_level_lacks.empty(), reason.best.level >= SimdLevel::kAvx512);
  EXPECT_EQ(reason.best.slow_pdep, reason.pdep_cost > kSlowPdepCost);
}

// The level is read once per process, so each of these runs in its own process.
void exit_with_level() {
  try {
    std::exit(10 + static_cast<int>(simd_level()) + (slow_pdep() ? 10 : 0));
  } catch (const Exception& exception) {
    std::exit(exception.error().code->id == "HR0341" ? 1 : 2);
  }
}

TEST(DispatchDeathTest, TheEnvironmentForcesTheLevel) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const SimdForm form : available_forms()) {
    EXPECT_EXIT(
        {
          setenv("HEADRACE_SIMD", std::string(name_of(form)).c_str(), 1);
          exit_with_level();
        },
        testing::ExitedWithCode(10 + static_cast<int>(form.level) + (form.slow_pdep ? 10 : 0)), "");
  }
}

TEST(DispatchDeathTest, AnUnknownLevelIsAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("HEADRACE_SIMD", "mmx", 1);
        exit_with_level();
      },
      testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace headrace
