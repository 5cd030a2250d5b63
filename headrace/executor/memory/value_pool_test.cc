// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/memory/value_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/base/pages.h"

namespace headrace {
namespace {

constexpr size_t kValue = size_t{1} << 20;

TEST(ValuePool, ReusesTheMemoryOfDroppedValues) {
  ValuePool pool(8 * kValue);
  auto first = pool.take(kValue);
  const void* memory = first.get();
  std::thread([&] { first.reset(); }).join();
  EXPECT_EQ(pool.unused_bytes(), kValue);
  EXPECT_EQ(pool.take(kValue).get(), memory);
}

TEST(ValuePool, GivesAValueThePagesThatItNeeds) {
  ValuePool pool(8 * kValue);
  const size_t before = mapped_bytes();
  pool.take(kValue).reset();
  auto larger = pool.take(3 * kValue);
  EXPECT_EQ(mapped_bytes() - before, 3 * kValue);
  std::memset(larger.get(), 1, 3 * kValue);
  larger.reset();
  auto smaller = pool.take(kValue / 2);
  EXPECT_EQ(mapped_bytes() - before, kValue / 2);
  EXPECT_EQ(pool.unused_bytes(), 0u);
  std::memset(smaller.get(), 2, kValue / 2);
}

TEST(ValuePool, DoesNotReuseAValueWhileAnythingRefersToIt) {
  ValuePool pool(64 * kValue);
  auto value = pool.take(kValue);
  std::memset(value.get(), 7, kValue);
  const auto kept = value;  // as a view of one item, when its batch is gone
  value.reset();
  for (int i = 0; i < 8; ++i) {
    const auto later = pool.take(kValue + size_t(i) * 4096);
    ASSERT_NE(later.get(), kept.get());
    std::memset(later.get(), 1, kValue);
  }
  const auto* bytes = static_cast<const uint8_t*>(kept.get());
  for (size_t i = 0; i < kValue; ++i) ASSERT_EQ(bytes[i], 7) << i;
}

TEST(ValuePool, CountsSmallValuesThatAreInUse) {
  ValuePool pool(2 * kValue);
  pool.take(kValue).reset();
  EXPECT_EQ(pool.unused_bytes(), kValue);
  std::vector<std::shared_ptr<void>> small;
  for (int i = 0; i < 16; ++i) small.push_back(pool.take(kValue / 16));
  EXPECT_EQ(pool.unused_bytes(), kValue);
  small.push_back(pool.take(1));
  EXPECT_EQ(pool.unused_bytes(), 0u);
}

// Values of many sizes that threads take, keep a while and hand to others to drop: each finds its
// own numbers in it, and all memory is given back.
TEST(ValuePool, ServesManyThreads) {
  const size_t before = mapped_bytes();
  {
    ValuePool pool(16 * kValue);
    std::mutex mutex;
    std::vector<std::pair<std::shared_ptr<uint32_t>, size_t>> shelf;
    std::atomic<int> wrong{0};
    const auto work = [&](uint32_t thread) {
      for (uint32_t i = 0; i < 200; ++i) {
        const size_t bytes = (size_t{64} << 10) * (1 + (i * 7 + thread) % 24);
        const auto value = std::static_pointer_cast<uint32_t>(pool.take(bytes));
        const uint32_t mark = thread << 16 | i;
        for (size_t at = 0; at < bytes / 4; at += 1024) value.get()[at] = mark;
        std::pair<std::shared_ptr<uint32_t>, size_t> taken;
        {
          const std::lock_guard lock(mutex);
          shelf.emplace_back(value, bytes);
          if (shelf.size() > 6) {
            std::swap(shelf[(i * 5 + thread) % shelf.size()], shelf.back());
            taken = std::move(shelf.back());
            shelf.pop_back();
          }
        }
        for (size_t at = 0; at < taken.second / 4; at += 1024) {
          wrong += taken.first.get()[at] != *taken.first;
        }
        for (size_t at = 0; at < bytes / 4; at += 1024) wrong += value.get()[at] != mark;
      }
    };
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < 4; ++i) threads.emplace_back(work, i);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    shelf.clear();
  }
  EXPECT_EQ(mapped_bytes(), before);
}

TEST(ValuePool, RetainsNoMoreThanItsShare) {
  const size_t before = mapped_bytes();
  {
    ValuePool pool(2 * kValue);
    auto a = pool.take(kValue), b = pool.take(kValue), c = pool.take(kValue);
    a.reset();  // two are in use
    EXPECT_EQ(pool.unused_bytes(), 0u);
    b.reset();
    EXPECT_EQ(pool.unused_bytes(), kValue);
    c.reset();
    EXPECT_EQ(pool.unused_bytes(), 2 * kValue);
    const auto d = pool.take(2 * kValue);
    EXPECT_EQ(pool.unused_bytes(), 0u);
  }
  EXPECT_EQ(mapped_bytes(), before);
}

TEST(ValuePool, MayBeDestroyedBeforeItsValues) {
  const size_t before = mapped_bytes();
  std::shared_ptr<void> value;
  {
    ValuePool pool(8 * kValue);
    value = pool.take(kValue);
  }
  std::memset(value.get(), 1, kValue);
  value.reset();
  EXPECT_EQ(mapped_bytes(), before);
}

}  // namespace
}  // namespace headrace
