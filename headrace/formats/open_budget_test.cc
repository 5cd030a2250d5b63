// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/open_budget.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().code->kind, ErrorKind::kResource);
    return exception.error().message();
  }
  return "";
}

TEST(OpenBudget, IsProportionalToTheFilesAndReportsTheExcess) {
  OpenBudget budget("a.h5", 1000);
  constexpr uint64_t kAll = OpenBudget::kBytes + 1000 * OpenBudget::kBytesPerByte;
  EXPECT_TRUE(budget.affords(kAll));
  EXPECT_EQ(refusal([&] { budget.spend(kAll - 10, "labels"); }), "");
  EXPECT_FALSE(budget.affords(11));
  const std::string why = refusal([&] { budget.spend(11, "the names of a group"); });
  EXPECT_TRUE(why.starts_with("HR0499 ")) << why;
  EXPECT_NE(
      why.find(
          "the names of a group would take 11 bytes more than the remaining budget, for files of "
          "1,000 bytes\n  where: a.h5"),
      std::string::npos)
      << why;
  EXPECT_EQ(refusal([&] { budget.spend(10, "labels"); }), "");
  budget.step(OpenBudget::kSteps + 1000 * OpenBudget::kStepsPerByte, "rows");
  EXPECT_NE(refusal([&] { budget.step(1, "rows"); }), "");
  OpenBudget vast("vast", UINT64_MAX);
  EXPECT_TRUE(vast.affords(UINT64_MAX));
}

TEST(OpenBudget, CallsProgressWhichMayCancel) {
  int calls = 0;
  struct Canceled {};
  const Progress progress = [&](int64_t, int64_t) {
    if (++calls == 3) throw Canceled();
  };
  OpenBudget budget("a", 0, &progress);
  EXPECT_THROW(for (int i = 0; i < 1 << 20; ++i) budget.step(1, "rows"), Canceled);
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace headrace
