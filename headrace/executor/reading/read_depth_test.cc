// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/reading/read_depth.h"

#include <gtest/gtest.h>

#include <queue>

namespace headrace {
namespace {

// A consumer that takes up to `most` records a second, and reads that take `latency`, on a virtual
// clock. Returns the records taken in the last second of ten, and the depth then.
struct Outcome {
  int64_t rate = 0, depth = 0;
};

Outcome simulated(double latency, double most) {
  ReadDepth depth;
  std::queue<double> ready_at;  // of reads under way or ready, in order
  Outcome out;
  double free = 0;  // when the consumer takes the next one
  for (double now = 0; now < 10; now += 1e-4) {
    while (static_cast<int64_t>(ready_at.size()) < depth.records()) ready_at.push(now + latency);
    while (!ready_at.empty() && ready_at.front() <= now && free <= now) {
      depth.arrived(latency);
      depth.taken(now);
      ready_at.pop();
      free = std::max(free, now - 1e-4) + 1 / most;
      out.rate += now >= 9;
    }
  }
  out.depth = depth.records();
  return out;
}

TEST(ReadDepth, ReachesTheConsumersRateAtAnyLatency) {
  for (const double latency : {0.001, 0.02, 0.1, 0.5}) {
    for (const double most : {200.0, 4000.0}) {
      const Outcome out = simulated(latency, most);
      EXPECT_GE(out.rate, 0.95 * most) << latency << " " << most;
      EXPECT_LE(out.depth, ReadDepth::kMin + 2.3 * latency * most) << "and goes no deeper";
    }
  }
}

TEST(ReadDepth, OfInstantStorageIsSmall) {
  EXPECT_LE(simulated(1e-4, 4000).depth, ReadDepth::kMin + 2);
}

TEST(ReadDepth, OutlastsAPauseOfTheConsumers) {
  ReadDepth depth;
  double now = 0;
  for (int i = 0; i < 4000; ++i) {
    depth.arrived(0.1);
    depth.taken(now += 1.0 / 2000);
  }
  const int64_t before = depth.records();
  EXPECT_GE(before, 390);
  depth.taken(now += 60);
  EXPECT_GE(depth.records(), before * 85 / 100);
}

}  // namespace
}  // namespace headrace
