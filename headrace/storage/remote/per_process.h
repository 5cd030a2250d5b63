// SPDX-License-Identifier: Apache-2.0
// What a process has one of, and a forked child one of its own: threads do not live on in a child,
// and a mutex may have been held when it was forked. The parent's is left where it is.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>

namespace headrace {

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

}  // namespace headrace
