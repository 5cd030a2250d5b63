// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/resources.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Threads, LeavesOneCoreForTheTrainerIfFourRemain) {
  EXPECT_EQ(threads_from({2, 0}, 1).threads, 2);
  EXPECT_EQ(threads_from({4, 0}, 1).threads, 4);
  EXPECT_EQ(threads_from({5, 0}, 1).threads, 4);
  EXPECT_EQ(threads_from({64, 0}, 1).threads, 63);
}

TEST(Threads, RespectsTheCgroupAndTheOtherRanks) {
  EXPECT_EQ(threads_from({64, 12.0}, 1).threads, 11);
  EXPECT_EQ(threads_from({64, 0.5}, 1).threads, 1);
  EXPECT_EQ(threads_from({16, 0}, 8).threads, 2);
  EXPECT_EQ(threads_from({2, 0}, 8).threads, 1);
  EXPECT_NE(threads_from({64, 12.0}, 1).origin.find("cgroup"), std::string::npos);
}

TEST(Threads, OfARankThatItsLauncherBoundAreNotDividedAgain) {
  EXPECT_EQ(threads_from({4, 0, true}, 8).threads, 4);
  EXPECT_EQ(threads_from({4, 16.0, true}, 8).threads, 2);  // time is shared all the same
  EXPECT_EQ(threads_from({4, 0, true}, 8).origin, "4 allowed cores, bound by the launcher");
  EXPECT_EQ(threads_from({4, 0, true}, 1).origin, "4 allowed cores");  // the user's own taskset
}

}  // namespace
}  // namespace headrace
