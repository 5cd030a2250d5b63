// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/thread_pool.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <thread>

#include "headrace/base/cores.h"

namespace headrace {
namespace {

cpu_set_t mask() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return set;
}

bool equal(const cpu_set_t& a, const cpu_set_t& b) { return CPU_EQUAL(&a, &b); }

// GNU's runtime binds whoever loads it.
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

}  // namespace
}  // namespace headrace
