// SPDX-License-Identifier: Apache-2.0
// The part of the memory limit for records while they are decoded, granted in order of position:
// the oldest waiting record is served first, and a record reserves everything that it needs at
// once.
//
// Note [Why the memory limit cannot deadlock]: slots and read-ahead have separate budgets, fixed
// when the loader starts. A record requests its working memory when it holds nothing of the
// records' budget, and returns all of its memory when it is done, without waiting for others. So a
// worker that holds memory finishes, and the oldest waiting record gets that memory next. With
// Python steps a record holds its memory while other records of its run begin, so no record waits
// there: a run whose next record finds too little memory is set aside, no new runs start before it,
// and the runs that hold memory continue and finish. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/mutex.h"

namespace headrace {

class GateHold;

class MemoryGate {
 public:
  explicit MemoryGate(size_t bytes) : MemoryGate(bytes, bytes) {}
  // `largest`: the limit of a single record. REQUIRES: it is not more than `bytes`.
  MemoryGate(size_t bytes, size_t largest) : limit_(bytes), largest_(largest) {}

  // Waits until the bytes are free and no older request waits. Nothing when `bytes` exceeds the
  // share. REQUIRES: the caller holds none of this gate.
  std::optional<GateHold> acquire(int64_t position, size_t bytes) EXCLUDES_LOCK(mutex_);
  // The same without waiting: nothing if the bytes are not free now. The caller may hold some of
  // this gate.
  std::optional<GateHold> try_acquire(size_t bytes) EXCLUDES_LOCK(mutex_);
  void release(size_t bytes) EXCLUDES_LOCK(mutex_);
  // Whether a record that needs this much is rejected, and the error.
  bool refuses(size_t bytes) const { return bytes > largest_; }
  Error refusal(size_t bytes) const;
  size_t used() const EXCLUDES_LOCK(mutex_);
  size_t peak() const EXCLUDES_LOCK(mutex_);
  // How long acquire() waited for bytes, summed over threads.
  double waited_seconds() const EXCLUDES_LOCK(mutex_);

 private:
  const size_t limit_, largest_;
  mutable Mutex mutex_;
  Condition freed_;
  size_t used_ GUARDED_BY(mutex_) = 0, peak_ GUARDED_BY(mutex_) = 0;
  double waited_seconds_ GUARDED_BY(mutex_) = 0;
  std::multiset<int64_t> waiting_ GUARDED_BY(mutex_);
};

// Holds bytes of the gate as long as it lives.
class GateHold {
 public:
  GateHold() = default;
  GateHold(MemoryGate& gate, size_t bytes) : gate_(&gate), bytes_(bytes) {}
  GateHold(GateHold&& other) noexcept
      : gate_(std::exchange(other.gate_, nullptr)), bytes_(other.bytes_) {}
  GateHold& operator=(GateHold&& other) noexcept {
    release();
    gate_ = std::exchange(other.gate_, nullptr);
    bytes_ = other.bytes_;
    return *this;
  }
  ~GateHold() { release(); }
  void release() {
    if (gate_) std::exchange(gate_, nullptr)->release(bytes_);
  }

 private:
  MemoryGate* gate_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace headrace
