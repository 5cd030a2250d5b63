// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/memory_gate.h"

#include <algorithm>

namespace headrace {

std::optional<GateHold> MemoryGate::acquire(int64_t position, size_t bytes) {
  if (bytes == 0) return GateHold();
  if (bytes > limit_) return std::nullopt;
  MutexLock lock(mutex_);
  if (used_ + bytes > limit_ || !waiting_.empty()) {
    auto mine = waiting_.insert(position);
    while (used_ + bytes > limit_ || mine != waiting_.begin()) freed_.wait(mutex_);
    waiting_.erase(mine);
    freed_.notify_all();
  }
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return GateHold(*this, bytes);
}

void MemoryGate::release(size_t bytes) {
  MutexLock lock(mutex_);
  used_ -= bytes;
  if (!waiting_.empty()) freed_.notify_all();
}

size_t MemoryGate::used() const {
  MutexLock lock(mutex_);
  return used_;
}

size_t MemoryGate::peak() const {
  MutexLock lock(mutex_);
  return peak_;
}

}  // namespace headrace
