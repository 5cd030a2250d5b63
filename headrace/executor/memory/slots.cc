// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/memory/slots.h"

#include <algorithm>
#include <cstring>

#include "headrace/base/pages.h"
#include "headrace/executor/threads/thread_pool.h"

namespace headrace {

SlotRing::SlotRing(size_t bytes, int depth, std::function<void()> on_return, DevicePtr device)
    : bytes_(bytes), depth_(depth), device_(std::move(device)), on_return_(std::move(on_return)) {}

SlotRing::~SlotRing() {
  for (void* memory : pinned_) device_->unpin(memory);
  for (void* memory : free_) unmap_pages(memory, bytes_);
}

std::shared_ptr<void> SlotRing::take() {
  void* memory = nullptr;
  {
    MutexLock lock(mutex_);
    if (!free_.empty()) {
      memory = free_.back();
      free_.pop_back();
    } else if (made_ < depth_) {
      // Returning a slot must not allocate.
      free_.reserve(static_cast<size_t>(depth_));
      if (device_) pinned_.reserve(static_cast<size_t>(depth_));
      memory = map_pages(bytes_);
      ++made_;
      if (device_ && device_->pin(memory, bytes_)) pinned_.push_back(memory);
    } else {
      return nullptr;
    }
  }
  poison(memory, bytes_);
  return std::shared_ptr<void>(memory,
                               [ring = shared_from_this()](void* p) { ring->give_back(p); });
}

int SlotRing::out() const {
  MutexLock lock(mutex_);
  return made_ - static_cast<int>(free_.size());
}

size_t SlotRing::mapped_bytes() const {
  MutexLock lock(mutex_);
  return bytes_ * static_cast<size_t>(made_);
}

bool SlotRing::pinned() const {
  MutexLock lock(mutex_);
  return device_ && static_cast<int>(pinned_.size()) == made_;
}

void SlotRing::detach() {
  MutexLock lock(mutex_);
  on_return_ = nullptr;
}

void SlotRing::give_back(void* memory) {
  // In a forked child, the lock may be held by a thread that does not exist there.
  if (forked_from_running_engine()) return;
  MutexLock lock(mutex_);
  free_.push_back(memory);  // has room, see take()
  // Under the lock, so that detach() returns only when no call is in progress.
  if (on_return_) on_return_();
}

std::shared_ptr<void> make_values(size_t bytes) {
  if (bytes >= kLargeBytes) return make_pages(bytes);
  return {::operator new(std::max<size_t>(bytes, 1), kValueAlignment),
          [](void* p) { ::operator delete(p, kValueAlignment); }};
}

std::shared_ptr<void> make_pages(size_t bytes) {
  std::shared_ptr<void> memory(map_pages(bytes), [bytes](void* p) { unmap_pages(p, bytes); });
  poison(memory.get(), bytes);
  return memory;
}

void poison([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#if defined(HEADRACE_POISON)
  std::memset(memory, 0xA5, bytes);
#endif
}

}  // namespace headrace
