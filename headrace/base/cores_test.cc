// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace headrace {
namespace {

TEST(Cores, AreTheFewerOfAffinityAndQuotaAndAtLeastOne) {
  EXPECT_EQ((AllowedCores{8, 0}.count()), 8);
  EXPECT_EQ((AllowedCores{8, 16.0}.count()), 8);
  EXPECT_EQ((AllowedCores{8, 8.0}.count()), 8);
  EXPECT_EQ((AllowedCores{8, 2.5}.count()), 2);
  EXPECT_EQ((AllowedCores{8, 0.5}.count()), 1);
}

TEST(Cores, FollowTheAffinity) {
  std::thread([] {  // so that no other thread's affinity changes
    cpu_set_t set;
    ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    int first = 0;
    while (!CPU_ISSET(first, &set)) ++first;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    EXPECT_EQ(allowed_cores().affinity, 1);
    EXPECT_EQ(allowed_cores().count(), 1);
  })
      .join();
}

}  // namespace
}  // namespace headrace
