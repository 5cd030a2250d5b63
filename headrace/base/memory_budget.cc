// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/memory_budget.h"

#include <algorithm>

namespace headrace {

size_t MemoryBudget::used() const {
  MutexLock lock(mutex_);
  return used_;
}

size_t MemoryBudget::peak() const {
  MutexLock lock(mutex_);
  return peak_;
}

bool MemoryBudget::try_reserve(size_t bytes) {
  MutexLock lock(mutex_);
  if (bytes > limit_ - std::min(used_, limit_)) return false;
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return true;
}

void MemoryBudget::release(size_t bytes) {
  MutexLock lock(mutex_);
  used_ -= bytes;
}

}  // namespace headrace
