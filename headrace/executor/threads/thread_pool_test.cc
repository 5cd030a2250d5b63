// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/threads/thread_pool.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "headrace/base/process_limits.h"

namespace headrace {
namespace {

cpu_set_t mask() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return set;
}

bool equal(const cpu_set_t& a, const cpu_set_t& b) { return CPU_EQUAL(&a, &b); }

// GNU's runtime binds the thread that loads it.
TEST(ThreadPool, ABoundMainThreadDoesNotKeepTheEngineOnItsCore) {
  const cpu_set_t all = mask();
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "there is one core";
  const bool by_launcher = allowed_cores().bound;
  std::thread([&] {
    setenv("OMP_PROC_BIND", "true", 1);
    const bool loaded = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);
    const cpu_set_t bound = mask();
    if (!loaded || equal(bound, all)) GTEST_SKIP() << "no libgomp.so.1 that binds";

    EXPECT_EQ(allowed_cores().affinity, CPU_COUNT(&all));
    EXPECT_EQ(allowed_cores().bound, by_launcher);
    cpu_set_t engines{}, its{};
    start_thread([&] {
      engines = mask();
      start_thread([&] { its = mask(); }).join();
    }).join();
    EXPECT_TRUE(equal(engines, all));
    EXPECT_TRUE(equal(its, all));
    EXPECT_TRUE(equal(mask(), bound)) << "the trainer's own binding stays";

    unsetenv("OMP_PROC_BIND");  // now the same mask is the user's
    EXPECT_EQ(allowed_cores().affinity, CPU_COUNT(&bound));
    start_thread([&] { engines = mask(); }).join();
    EXPECT_TRUE(equal(engines, bound));
  }).join();
  unsetenv("OMP_PROC_BIND");
}

// Counts the workers that come; there are `work` pieces of work.
class Counted final : public PoolClient {
 public:
  explicit Counted(int most) : most_(most) {}
  int max_workers() const override { return most_; }
  bool work(Renderer&) override {
    ++visits;
    int left = pieces;
    while (left > 0 && !pieces.compare_exchange_weak(left, left - 1)) {
    }
    return left > 0;
  }
  std::atomic<int> visits{0}, pieces{0};

 private:
  const int most_;
};

// Calls until it holds; a test that never does is ended by the runner.
template <class Condition>
void await(const Condition& condition) {
  while (!condition()) std::this_thread::yield();
}

TEST(ThreadPool, UnusedThreadsEnd) {
  ThreadPool& pool = ThreadPool::workers();
  ASSERT_EQ(pool.threads(), 0u);
  Counted small(3), large(64);
  pool.add(small);
  EXPECT_EQ(pool.threads(), 3u);
  pool.add(large);
  EXPECT_EQ(pool.threads(), 64u);
  pool.remove(large);
  EXPECT_EQ(pool.threads(), 3u) << "the other client's";
  pool.remove(small);
  EXPECT_EQ(pool.threads(), 0u);
  pool.add(small);  // and they start again
  small.pieces = 5;
  pool.wake(1);
  await([&] { return small.pieces == 0; });
  pool.remove(small);
}

TEST(ThreadPool, WakingOneDoesNotWakeAll) {
  ThreadPool& pool = ThreadPool::workers();
  Counted client(64);
  pool.add(client);
  await([&] { return pool.asleep() == 64; });
  const int before = client.visits;
  pool.wake(2);
  await([&] { return client.visits >= before + 2 && pool.asleep() == 64; });
  EXPECT_EQ(client.visits, before + 2);
  pool.remove(client);
}

TEST(ThreadPool, ClientsComeAndGoWhileOthersWork) {
  ThreadPool& pool = ThreadPool::workers();
  Counted steady(4);
  steady.pieces = 1 << 20;
  pool.add(steady);
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user) {
    users.emplace_back([&, user] {
      for (int round = 0; round < 50; ++round) {
        Counted client(1 + (user * 7 + round) % 16);
        client.pieces = 3;
        pool.add(client);
        pool.wake(client.max_workers());
        await([&] { return client.pieces == 0; });
        pool.remove(client);
      }
    });
  }
  for (std::thread& user : users) user.join();
  pool.remove(steady);
  EXPECT_EQ(pool.threads(), 0u);
}

TEST(ThreadPool, CanBeUsedAgainAfterAShutdown) {
  ThreadPool& pool = ThreadPool::workers();
  Counted client(4);
  pool.add(client);
  pool.shutdown();
  EXPECT_EQ(pool.threads(), 0u);
  pool.remove(client);
  pool.add(client);
  client.pieces = 9;
  pool.wake(4);
  await([&] { return client.pieces == 0; });
  pool.remove(client);
}

}  // namespace
}  // namespace headrace
