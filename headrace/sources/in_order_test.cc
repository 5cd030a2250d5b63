// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/in_order.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>

#include "headrace/base/allocations_test_hook.h"

namespace headrace {
namespace {
thread_local bool refuses_next = false;
}  // namespace

void before_allocation() {
  if (std::exchange(refuses_next, false)) throw std::bad_alloc();
}

namespace {

using Items = std::vector<int>;

struct Outcome {
  std::vector<int64_t> taken;
  std::string thrown;
  int makers = 0;
};

// Numbers 3 .. 499 as vectors of differing length; `work` and `take` throw at the given numbers.
Outcome run(int threads, size_t max_bytes, int64_t bad_work = -1, int64_t bad_take = -1) {
  Outcome out;
  std::atomic<int> makers{0};
  InOrder<Items> order(3, 500, max_bytes);
  try {
    order.run(
        threads,
        [&] {
          ++makers;
          return [&](int64_t i) {
            if (i == bad_work) throw std::runtime_error("work");
            return Items(static_cast<size_t>(i % 50 + 1), static_cast<int>(i));
          };
        },
        [](const Items& items) { return items.size() * sizeof(int); },
        [&](Items items) {
          if (items.front() == bad_take) throw std::logic_error("take");
          out.taken.push_back(items.front());
        },
        [](int64_t) {});
  } catch (const std::exception& failure) {
    out.thrown = failure.what();
  }
  out.makers = makers;
  return out;
}

std::vector<int64_t> numbers_below(int64_t end) {
  std::vector<int64_t> numbers(static_cast<size_t>(end - 3));
  std::iota(numbers.begin(), numbers.end(), 3);
  return numbers;
}

TEST(InOrder, TakesEveryItemInOrder) {
  for (int threads : {1, 2, 7}) {
    for (size_t max_bytes : {size_t{1}, size_t{1000}, size_t{1} << 20}) {
      const Outcome outcome = run(threads, max_bytes);
      EXPECT_EQ(outcome.taken, numbers_below(500));
      EXPECT_LE(outcome.makers, threads);
    }
  }
}

TEST(InOrder, ThrowsAfterAllEarlierItems) {
  for (int threads : {1, 4}) {
    const Outcome outcome = run(threads, 1000, 300);
    EXPECT_EQ(outcome.thrown, "work");
    EXPECT_EQ(outcome.taken, numbers_below(300));
  }
}

TEST(InOrder, EndsWhenTakingThrows) {
  const Outcome outcome = run(4, 1000, -1, 200);
  EXPECT_EQ(outcome.thrown, "take");
  EXPECT_EQ(outcome.taken, numbers_below(200));
}

// What is allocated after the items' sizes were asked for is their place among the results.
TEST(InOrder, AFailedAllocationForAResultEndsTheWork) {
  for (int threads : {1, 3}) {
    InOrder<Items> order(3, 500, size_t{1} << 20);
    EXPECT_THROW(
        order.run(
            threads, [] { return [](int64_t i) { return Items(1, static_cast<int>(i)); }; },
            [](const Items& items) {
              refuses_next = items.front() == 3;
              return size_t{4};
            },
            [](const Items&) {}, [](int64_t) {}),
        std::bad_alloc);
  }
}

}  // namespace
}  // namespace headrace
