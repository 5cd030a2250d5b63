// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/delayed_calls.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "headrace/base/clock.h"
#include "headrace/base/per_process.h"
#include "headrace/base/signals.h"

namespace headrace {

DelayedCalls::~DelayedCalls() {
  std::thread thread;
  {
    MutexLock lock(mutex_);
    closing_ = true;
    changed_.notify_all();
    thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
}

void DelayedCalls::at(double when, std::function<void()> call) {
  MutexLock lock(mutex_);
  if (!thread_.joinable() && !closing_) {
    const BlockedSignals blocked;
    thread_ = std::thread([this] { run(); });
  }
  const auto added =
      calls_.emplace(when, std::move(call));  // last: if it throws, nothing was added
  if (added == calls_.begin()) changed_.notify_all();
}

void DelayedCalls::run() {
  mutex_.lock();
  for (;;) {
    if (calls_.empty()) {
      if (closing_) break;
      changed_.wait(mutex_);
      continue;
    }
    const double left = calls_.begin()->first - now();
    if (left > 0 && !closing_) {
      const double milliseconds = std::min(std::ceil(left * 1e3), 1e6);
      changed_.wait_for(mutex_, std::chrono::milliseconds(static_cast<int64_t>(milliseconds)));
      continue;
    }
    const auto call = std::move(calls_.begin()->second);
    calls_.erase(calls_.begin());
    mutex_.unlock();
    call();
    mutex_.lock();
  }
  mutex_.unlock();
}

void call_later(double seconds, std::function<void()> call) {
  of_this_process<DelayedCalls>().at(now() + seconds, std::move(call));
}

}  // namespace headrace
