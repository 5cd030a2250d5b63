// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/memory/memory_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace headrace {
namespace {

TEST(MemoryGate, RefusesRequestsThatCanNeverFit) {
  MemoryGate gate(100);
  EXPECT_FALSE(gate.acquire(0, 101));
  EXPECT_TRUE(gate.acquire(0, 100));
  EXPECT_EQ(gate.used(), 0u);  // the hold died with the expression
  EXPECT_EQ(gate.waited_seconds(), 0);
}

TEST(MemoryGate, OneRecordMayBeAllowedLessThanSeveralTogether) {
  MemoryGate gate(100, 40);
  EXPECT_FALSE(gate.refuses(40));
  EXPECT_TRUE(gate.refuses(41));
  EXPECT_TRUE(gate.acquire(0, 80));
}

TEST(MemoryGate, NeverExceedsItsLimitAndStarvesNoWaiter) {
  MemoryGate gate(1000);
  std::atomic<int64_t> next{0}, served{0};
  std::atomic<size_t> held{0}, most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int64_t position; (position = next++) < 4000;) {
        const size_t bytes = static_cast<size_t>(position * 7919 % 1000 + 1);
        auto hold = gate.acquire(position, bytes);
        ASSERT_TRUE(hold);
        const size_t now = held += bytes;
        for (size_t seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        held -= bytes;
        ++served;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served, 4000);
  EXPECT_LE(most, 1000u);
  EXPECT_LE(gate.peak(), 1000u);
  EXPECT_EQ(gate.used(), 0u);
}

// Whatever the order of arrival, a large record gets its turn among a stream of small ones.
TEST(MemoryGate, ALargeRecordDoesNotStarve) {
  MemoryGate gate(100);
  std::atomic<bool> large_served{false};
  std::atomic<int64_t> next{1};
  std::vector<std::thread> small;
  for (int t = 0; t < 4; ++t) {
    small.emplace_back([&] {
      while (!large_served) {
        auto hold = gate.acquire(next++, 30);
        std::this_thread::yield();
      }
    });
  }
  std::thread large([&] {
    auto hold = gate.acquire(0, 100);
    large_served = true;
  });
  large.join();
  for (std::thread& thread : small) thread.join();
  EXPECT_TRUE(large_served);
}

}  // namespace
}  // namespace headrace
