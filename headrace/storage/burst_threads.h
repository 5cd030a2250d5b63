// SPDX-License-Identifier: Apache-2.0
// Calls functions asynchronously, on a few threads that exist only while there are calls to make.
// For work that waits for a disk or for Python, if the calling thread must not block. Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include "headrace/base/mutex.h"

namespace headrace {

class BurstThreads {
 public:
  explicit BurstThreads(size_t most) : most_(most) {}
  // Waits until all calls have returned.
  ~BurstThreads() { wait(); }
  BurstThreads(const BurstThreads&) = delete;
  BurstThreads& operator=(const BurstThreads&) = delete;

  // Calls start in order. If no thread can be started, they run on the calling thread. `work` must
  // not throw.
  void call(std::function<void()> work) EXCLUDES_LOCK(mutex_);
  // The same for a caller that must not run it: false if no thread can be started.
  bool try_call(std::function<void()> work) EXCLUDES_LOCK(mutex_);
  // Returns when no call is running or waiting.
  void wait() EXCLUDES_LOCK(mutex_);

 private:
  bool has_thread() REQUIRES_LOCK(mutex_);
  void run() EXCLUDES_LOCK(mutex_);

  const size_t most_;
  Mutex mutex_;
  Condition idle_;
  std::deque<std::function<void()>> waiting_ GUARDED_BY(mutex_);
  size_t threads_ GUARDED_BY(mutex_) = 0;
};

}  // namespace headrace
