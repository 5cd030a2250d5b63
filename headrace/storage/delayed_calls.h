// SPDX-License-Identifier: Apache-2.0
// Calls functions later, on one thread of its own: simulates a network in tests.
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
  // Calls at once what is left. No call may be added from then on but by a call.
  ~DelayedCalls();
  DelayedCalls(const DelayedCalls&) = delete;
  DelayedCalls& operator=(const DelayedCalls&) = delete;

  // `when` in seconds of now() (base/clock.h). Calls that are due at the same time come in order.
  void at(double when, std::function<void()> call) EXCLUDES_LOCK(mutex_);

 private:
  void run() EXCLUDES_LOCK(mutex_);

  Mutex mutex_;
  Condition changed_;
  std::multimap<double, std::function<void()>> calls_ GUARDED_BY(mutex_);
  bool closing_ GUARDED_BY(mutex_) = false;
  std::thread thread_ GUARDED_BY(mutex_);
};

// On one thread that the process shares, which must not be kept waiting.
void call_later(double seconds, std::function<void()> call);

}  // namespace headrace
