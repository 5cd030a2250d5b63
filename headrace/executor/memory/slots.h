// SPDX-License-Identifier: Apache-2.0
// Preallocated memory for batches: for each dense output field a ring of buffers that are leased
// to batches and return when the last view of that field is destroyed.
//
// The ring outlives the loader as long as a lease does. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/device/device.h"

namespace headrace {

class SlotRing : public std::enable_shared_from_this<SlotRing> {
 public:
  // Memory is mapped when a buffer is first taken. `on_return` is called when a lease ends, with
  // only this ring's lock held. Buffers are pinned for `device`, if given.
  SlotRing(size_t bytes, int depth, std::function<void()> on_return, DevicePtr device = nullptr);
  ~SlotRing();

  // One buffer, or null if all are leased. The deleter returns it.
  std::shared_ptr<void> take() EXCLUDES_LOCK(mutex_);
  size_t bytes() const { return bytes_; }
  int depth() const { return depth_; }
  int out() const EXCLUDES_LOCK(mutex_);  // leased now
  int available() const { return depth_ - out(); }
  size_t mapped_bytes() const EXCLUDES_LOCK(mutex_);
  bool pinned() const EXCLUDES_LOCK(mutex_);  // all buffers made so far

  // Prevents further calls of on_return, for example because the loader is destroyed. Returns only
  // when no call is in progress.
  void detach() EXCLUDES_LOCK(mutex_);

 private:
  void give_back(void* memory) EXCLUDES_LOCK(mutex_);
  const size_t bytes_;
  const int depth_;
  const DevicePtr device_;
  mutable Mutex mutex_;
  std::vector<void*> free_ GUARDED_BY(mutex_);
  std::vector<void*> pinned_ GUARDED_BY(mutex_);
  int made_ GUARDED_BY(mutex_) = 0;
  std::function<void()> on_return_ GUARDED_BY(mutex_);
};

// Page-aligned memory that the pointer owns.
std::shared_ptr<void> make_pages(size_t bytes);
// Memory aligned as required by frameworks that adopt it (XLA, Eigen): to 64 bytes at least. Large
// memory consists of pages, see Note [Why large memory is mapped]. Not zeroed.
std::shared_ptr<void> make_values(size_t bytes);
inline constexpr std::align_val_t kValueAlignment{64};
// Fills memory with a recognizable pattern in builds with HEADRACE_POISON.
void poison(void* memory, size_t bytes);

}  // namespace headrace
