// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/burst_threads.h"

#include <system_error>
#include <thread>
#include <utility>

#include "headrace/base/signals.h"

namespace headrace {

void BurstThreads::call(std::function<void()> work) {
  {
    MutexLock lock(mutex_);
    waiting_.push_back(std::move(work));
    if (has_thread()) return;
    ++threads_;
  }
  run();
}

bool BurstThreads::try_call(std::function<void()> work) {
  MutexLock lock(mutex_);
  waiting_.push_back(std::move(work));
  if (has_thread()) return true;
  waiting_.pop_back();  // nothing else waits without a thread
  return false;
}

// Starts one more, if there may be more.
bool BurstThreads::has_thread() {
  if (threads_ == most_) return true;
  try {
    const BlockedSignals blocked;
    std::thread([this] { run(); }).detach();  // wait() waits for its end
    ++threads_;
  } catch (const std::system_error&) {
    return threads_ > 0;
  }
  return true;
}

void BurstThreads::wait() {
  MutexLock lock(mutex_);
  while (threads_ > 0) idle_.wait(mutex_);
}

void BurstThreads::run() {
  mutex_.lock();
  while (!waiting_.empty()) {
    auto work = std::move(waiting_.front());
    waiting_.pop_front();
    mutex_.unlock();
    work();
    work = nullptr;  // its captures are destroyed before the end is announced
    mutex_.lock();
  }
  --threads_;
  idle_.notify_all();
  mutex_.unlock();
}

}  // namespace headrace
