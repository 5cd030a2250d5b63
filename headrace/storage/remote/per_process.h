// SPDX-License-Identifier: Apache-2.0
// A process's state after a fork: threads do not live on in a child, and a
// mutex may have been held at that moment, by a thread that the child lacks.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>

#include "headrace/base/mutex.h"

namespace headrace {

// An object of which each process, including forked children, has its own. The parent's is left in
// place.

template <class T>
T& of_this_process() {
  static std::atomic<T*> one{nullptr};
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { one.store(nullptr, std::memory_order_relaxed); });
  (void)registered;
  T* found = one.load(std::memory_order_acquire);
  if (found) return *found;
  auto made = std::make_unique<T>();
  if (one.compare_exchange_strong(found, made.get())) found = made.release();
  return *found;  // never destroyed: threads may use it at exit
}

// For state that a child takes over: fork() holds the mutex briefly, so no other thread does.
// REQUIRES: held only briefly, and never while a process is forked.
template <Mutex& (*mutex_of)()>
int free_over_fork() {
  return pthread_atfork([]() HR_ANNOTATION(no_thread_safety_analysis) { mutex_of().lock(); },
                        []() HR_ANNOTATION(no_thread_safety_analysis) { mutex_of().unlock(); },
                        []() HR_ANNOTATION(no_thread_safety_analysis) { mutex_of().unlock(); });
}

}  // namespace headrace
