// SPDX-License-Identifier: Apache-2.0
// A loop whose iterations are executed by the calling thread and by some of the process's workers,
// as they become free; so it is never slower than the caller alone.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/executor/threads/thread_pool.h"

namespace headrace {

class ParallelFor final : private PoolClient {
 public:
  // helpers: maximum number of workers in addition to the caller. They join with the first loop.
  explicit ParallelFor(int helpers) : helpers_(*this, helpers) {}
  ParallelFor(const ParallelFor&) = delete;
  ParallelFor& operator=(const ParallelFor&) = delete;

  // Calls body(0) to body(count - 1), each once, on any thread; returns when all have returned.
  // Rethrows the exception of the lowest-numbered call that threw. Called by one thread at a time.
  void run(size_t count, const std::function<void(size_t)>& body) EXCLUDES_LOCK(mutex_);

 private:
  int max_workers() const override { return helpers_.most(); }
  bool work(Renderer& renderer) override EXCLUDES_LOCK(mutex_);
  bool run_one() EXCLUDES_LOCK(mutex_);

  Mutex mutex_;
  Condition idle_;
  // The body of the current loop; null if count_ is 0.
  const std::function<void(size_t)>* body_ GUARDED_BY(mutex_) = nullptr;
  size_t count_ GUARDED_BY(mutex_) = 0, begun_ GUARDED_BY(mutex_) = 0;
  int active_ GUARDED_BY(mutex_) = 0;                          // calls of body in progress
  std::vector<std::exception_ptr> errors_ GUARDED_BY(mutex_);  // by number of the call

  Helpers helpers_;
};

}  // namespace headrace
