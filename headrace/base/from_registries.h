// SPDX-License-Identifier: Apache-2.0
// Computes a value from registries once, and again after a plug-in has registered more records.
// Earlier values are kept, since other threads may still use them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>

#include "headrace/base/registry.h"

namespace headrace {

// Any thread may call get(); `make` runs under a lock.
template <class Value>
class FromRegistries {
 public:
  template <class Make>
  const Value& get(const Make& make) {
    const Made* const latest = latest_.load(std::memory_order_acquire);
    if (latest && latest->records == registered_records()) return latest->value;
    const std::lock_guard lock(mutex_);
    const uint64_t records = registered_records();
    if (made_.empty() || made_.back().records != records) made_.push_back({records, make()});
    latest_.store(&made_.back(), std::memory_order_release);
    return made_.back().value;
  }

 private:
  struct Made {
    uint64_t records;
    Value value;
  };
  std::atomic<const Made*> latest_ = nullptr;
  std::mutex mutex_;
  std::deque<Made> made_;
};

}  // namespace headrace
