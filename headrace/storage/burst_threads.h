// SPDX-License-Identifier: Apache-2.0
// Calls functions soon, on a few threads that exist only while there is something to call: for work
// that waits for a disk or for Python, which the calling thread must not do. Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include "headrace/base/mutex.h"

namespace headrace {

class BurstThreads {
 public:
  explicit BurstThreads(size_t most) : most_(most) {}
  // Waits until all was called.
  ~BurstThreads() { wait(); }
  BurstThreads(const BurstThreads&) = delete;
  BurstThreads& operator=(const BurstThreads&) = delete;

  // Calls start in order. If no thread can be started, the caller's thread makes them. A call must
  // not throw.
  void call(std::function<void()> work) EXCLUDES_LOCK(mutex_);
  // Returns when no call is running or waiting.
  void wait() EXCLUDES_LOCK(mutex_);

 private:
  void run() EXCLUDES_LOCK(mutex_);

  const size_t most_;
  Mutex mutex_;
  Condition idle_;
  std::deque<std::function<void()>> waiting_ GUARDED_BY(mutex_);
  size_t threads_ GUARDED_BY(mutex_) = 0;
};

}  // namespace headrace
