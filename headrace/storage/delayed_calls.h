// SPDX-License-Identifier: Apache-2.0
// Calls functions at given times, on its own thread: simulates network latency in tests.
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "headrace/base/mutex.h"

namespace headrace {

class DelayedCalls {
 public:
  DelayedCalls() = default;
  // Makes the remaining calls immediately. From then on only those calls may add further calls.
  ~DelayedCalls();
  DelayedCalls(const DelayedCalls&) = delete;
  DelayedCalls& operator=(const DelayedCalls&) = delete;

  // `when`: in seconds, on the clock of now() (base/clock.h). Calls due at the same time are made
  // in order.
  void at(double when, std::function<void()> call) EXCLUDES_LOCK(mutex_);

 private:
  void run() EXCLUDES_LOCK(mutex_);

  Mutex mutex_;
  Condition changed_;
  std::multimap<double, std::function<void()>> calls_ GUARDED_BY(mutex_);
  bool closing_ GUARDED_BY(mutex_) = false;
  std::thread thread_ GUARDED_BY(mutex_);
};

// Calls it on a thread shared by the whole process, which must not block.
void call_later(double seconds, std::function<void()> call);

}  // namespace headrace
