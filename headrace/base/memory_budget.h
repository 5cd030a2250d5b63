// SPDX-License-Identifier: Apache-2.0
// One limit for the bytes that a loader's engine holds: slots, read-ahead, scratch, caches.
//
// Slots and read-ahead take fixed shares when the loader starts; what a record needs while it is
// decoded is reserved once, before it is taken, in order of position, so a record never waits while
// it holds (Note [Why the memory limit cannot deadlock] in executor/engine.h).
// Thread-safe: any thread may call any member.
#pragma once

#include <cstddef>

#include "headrace/base/mutex.h"

namespace headrace {

class MemoryBudget {
 public:
  explicit MemoryBudget(size_t limit_bytes) : limit_(limit_bytes) {}

  size_t limit() const { return limit_; }
  size_t used() const EXCLUDES_LOCK(mutex_);
  size_t peak() const EXCLUDES_LOCK(mutex_);

  // Takes the bytes if they are free; never waits.
  bool try_reserve(size_t bytes) EXCLUDES_LOCK(mutex_);
  void release(size_t bytes) EXCLUDES_LOCK(mutex_);

 private:
  const size_t limit_;
  mutable Mutex mutex_;
  size_t used_ GUARDED_BY(mutex_) = 0;
  size_t peak_ GUARDED_BY(mutex_) = 0;
};

}  // namespace headrace
