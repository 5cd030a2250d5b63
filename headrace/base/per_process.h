// SPDX-License-Identifier: Apache-2.0
// Per-process state that remains valid after a fork. The child has none of the parent's other
// threads, any of which may have held a mutex at the time of the fork.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>

#include "headrace/base/mutex.h"

namespace headrace {

// An object that each process has its own copy of, including forked children. In a child, the
// parent's object is abandoned, not destroyed.

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

// For state that a child inherits: locks the mutex during fork(), so that no other thread holds it.
// REQUIRES: the mutex is held only briefly, and never by a thread that calls fork().
template <Mutex& (*mutex_of)()>
int free_over_fork() {
  return pthread_atfork([]() HR_ANNOTATION(no_thread_safety_analysis) { mutex_of().lock(); },
                        []() HR_ANNOTATION(no_thread_safety_analysis) { mutex_of().unlock(); },
                        []() HR_ANNOTATION(no_thread_safety_analysis) { mutex_of().unlock(); });
}

}  // namespace headrace
