// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/dispatch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "headrace/base/error.h"

namespace headrace {
namespace {

TEST(Dispatch, OffersTheLevelsWorstFirstAndPicksTheBest) {
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

// The level is read once a process, so each of these runs in one of its own.
void exit_with_level() {
  try {
    std::exit(10 + static_cast<int>(simd_level()));
  } catch (const Exception& exception) {
    std::exit(exception.error().code->id == "HR0341" ? 1 : 2);
  }
}

TEST(DispatchDeathTest, TheEnvironmentForcesTheLevel) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (SimdLevel level : available_levels()) {
    EXPECT_EXIT(
        {
          setenv("HEADRACE_SIMD", std::string(name_of(level)).c_str(), 1);
          exit_with_level();
        },
        testing::ExitedWithCode(10 + static_cast<int>(level)), "");
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
