// SPDX-License-Identifier: Apache-2.0
// Caches the latest tables, for samplers that compute a table per epoch, or per part of an epoch.
// Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/base/mutex.h"

namespace headrace {

template <class Key, class Value>
class Recent {
 public:
  // Shared with the threads that still read evicted values.
  using Made = std::shared_ptr<const Value>;

  explicit Recent(size_t most) : most_(most) {}

  // The value of this key, made if it is not cached; occasionally by two threads at once. `make`
  // runs without the lock, and may throw.
  template <class Make>
  Made of(const Key& key, const Make& make) EXCLUDES_LOCK(mutex_) {
    if (Made found = find(key)) return found;
    auto made = std::make_shared<const Value>(make());
    const MutexLock lock(mutex_);
    kept_.insert(kept_.begin(), {key, made});
    if (kept_.size() > most_) kept_.pop_back();
    return made;
  }

  void clear() EXCLUDES_LOCK(mutex_) {
    const MutexLock lock(mutex_);
    kept_.clear();
  }

 private:
  // Most recently used first.
  Made find(const Key& key) EXCLUDES_LOCK(mutex_) {
    const MutexLock lock(mutex_);
    const auto found =
        std::ranges::find_if(kept_, [&](const auto& entry) { return entry.first == key; });
    if (found == kept_.end()) return nullptr;
    std::rotate(kept_.begin(), found, found + 1);
    return kept_.front().second;
  }

  const size_t most_;
  Mutex mutex_;
  std::vector<std::pair<Key, Made>> kept_ GUARDED_BY(mutex_);
};

}  // namespace headrace
