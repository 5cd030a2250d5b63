// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/pace.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Pace, PausesGrowWithJitterUpToTheLongest) {
  Backoff slow(0.1, 15), quick(0.1, 15);
  double last = 0;
  for (int i = 0; i < 20; ++i) last = slow.next(0.999, {});
  EXPECT_EQ(last, 15);
  EXPECT_EQ(quick.next(0, {}), 0.1);
  EXPECT_EQ(quick.next(0.5, 70.0), 70.0);  // as the server asks
}

TEST(Pace, RetryAfterZeroStillPauses) {
  Backoff backoff(0.1, 15);
  EXPECT_EQ(backoff.next(0, 0.0), 0.1);
  EXPECT_GT(backoff.next(0.999, 0.0), 0.29);  // and longer each time
  EXPECT_GT(backoff.next(0.999, 0.0), 0.8);
}

TEST(Pace, AThrottledServerGetsHalfTheRequestsThenGraduallyMore) {
  RequestLimit limit(64);
  EXPECT_EQ(limit.now(), 64);
  for (int i = 0; i < 30; ++i) limit.throttled(100.0);  // answers to what was sent together
  EXPECT_EQ(limit.now(), 32);
  limit.throttled(101.5);
  EXPECT_EQ(limit.now(), 16);
  EXPECT_TRUE(limit.is_throttled(110));
  EXPECT_FALSE(limit.is_throttled(140));
  for (double time = 102; time < 106; time += 0.1) limit.all_in_use(time);
  EXPECT_GE(limit.now(), 19);
  EXPECT_LE(limit.now(), 20);
  for (double time = 106; time < 300; time += 0.5) limit.all_in_use(time);
  EXPECT_EQ(limit.now(), 64);
}

TEST(Pace, AChangedLimitAppliesFromThenOn) {
  RequestLimit limit(64);
  limit.set_most(512);
  EXPECT_EQ(limit.now(), 512);
  limit.set_most(64);
  limit.throttled(100);
  limit.set_most(128);
  EXPECT_EQ(limit.now(), 32);
  limit.set_most(16);
  EXPECT_EQ(limit.now(), 16);
}

TEST(Pace, ATemporarilyLowerLimitDoesNotResetThrottling) {
  RequestLimit limit(64);
  limit.throttled(100);
  limit.set_most(2);
  EXPECT_EQ(limit.now(), 2);
  limit.set_most(64);
  EXPECT_EQ(limit.now(), 32);
}

TEST(Pace, SlowRequestsAreSentTwiceWithinABudget) {
  Hedges hedges(0.05);
  EXPECT_NEAR(hedges.after(1000), 1, 1e-3);  // nothing is known yet
  for (int i = 0; i < 64; ++i) hedges.took(1000, 0.1);
  EXPECT_NEAR(hedges.after(1000), 0.3, 1e-6);        // three times the median
  EXPECT_NEAR(hedges.after(100'000'000), 11, 1e-6);  // 10 s to send so much, and one to answer
  for (int i = 0; i < 64; ++i) hedges.took(1000, i % 20 == 0 ? 2.0 : 0.1);
  EXPECT_NEAR(hedges.after(1000), 2.0, 1e-6);        // 99 % of them
  EXPECT_NEAR(hedges.after(UINT64_MAX), 2.0, 1e-6);  // of a different size: no sooner
  EXPECT_TRUE(hedges.take());
  EXPECT_FALSE(hedges.take());
  for (int i = 0; i < 51; ++i) hedges.begun();
  EXPECT_TRUE(hedges.take());
  EXPECT_FALSE(hedges.take());
}

}  // namespace
}  // namespace headrace
