// SPDX-License-Identifier: Apache-2.0
// std::mutex and std::condition_variable with clang's thread-safety annotations.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define HR_ANNOTATION(x) __attribute__((x))
#else
#define HR_ANNOTATION(x)
#endif
#define GUARDED_BY(mutex) HR_ANNOTATION(guarded_by(mutex))
#define REQUIRES_LOCK(mutex) HR_ANNOTATION(requires_capability(mutex))
#define EXCLUDES_LOCK(mutex) HR_ANNOTATION(locks_excluded(mutex))

namespace headrace {

class HR_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() HR_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() HR_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

class HR_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HR_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() HR_ANNOTATION(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class Condition {
 public:
  void wait(Mutex& mutex) REQUIRES_LOCK(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // False on timeout.
  bool wait_for(Mutex& mutex, std::chrono::milliseconds timeout) REQUIRES_LOCK(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const bool notified = condition_.wait_for(lock, timeout) == std::cv_status::no_timeout;
    lock.release();
    return notified;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace headrace
