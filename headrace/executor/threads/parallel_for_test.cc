// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/threads/parallel_for.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace headrace {
namespace {

TEST(ParallelFor, EachRoundIsDoneOnceWithAnyNumberOfHelpers) {
  for (const int helpers : {0, 1, 3}) {
    ParallelFor loop(helpers);
    for (const size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{7}, size_t{500}}) {
      std::vector<int> done(count);
      loop.run(count, [&](size_t round) { ++done[round]; });
      EXPECT_EQ(done, std::vector<int>(count, 1));
    }
  }
}

// Neither round ends before the other has begun.
TEST(ParallelFor, AHelperTakesPart) {
  ParallelFor loop(1);
  std::atomic<int> begun{0};
  loop.run(2, [&](size_t) {
    ++begun;
    while (begun < 2) std::this_thread::yield();
  });
  EXPECT_EQ(begun, 2);
}

TEST(ParallelFor, TheFirstErrorByNumberComesWhenAllRoundsHaveEnded) {
  ParallelFor loop(3);
  std::atomic<int> done{0};
  const auto body = [&](size_t round) {
    ++done;
    if (round == 5 || round == 11) throw std::runtime_error(std::to_string(round));
  };
  for (int time = 0; time < 20; ++time) {
    done = 0;
    try {
      loop.run(20, body);
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "5");
    }
    EXPECT_EQ(done, 20);
  }
  loop.run(20, [&](size_t) { ++done; });
  EXPECT_EQ(done, 40);
}

}  // namespace
}  // namespace headrace
