// SPDX-License-Identifier: Apache-2.0
// Memory for the values that operators compute for a thread's records, reused when a value is no
// longer referenced: touching fresh pages would cost more than many operators.
//
// of() is for one thread. Any thread may release the values, even after this object was destroyed.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/mutex.h"

namespace headrace {

class ValueMemory {
 public:
  // An uninitialized buffer of this size.
  std::shared_ptr<Buffer> of(size_t bytes) {
    if (bytes < kLeast) return std::make_shared<Buffer>(bytes);
    std::unique_ptr<Buffer> buffer = kept_->take(bytes);
    if (!buffer) buffer = std::make_unique<Buffer>();
    buffer->resize(bytes);
    return {buffer.release(), [back = std::weak_ptr<Kept>(kept_)](Buffer* dropped) {
              std::unique_ptr<Buffer> own(dropped);
              if (const std::shared_ptr<Kept> kept = back.lock()) kept->put(std::move(own));
            }};
  }

  size_t held_bytes() const { return kept_->bytes(); }
  // Frees unused buffers beyond this many bytes.
  void trim(size_t bytes) { kept_->trim(bytes); }

 private:
  static constexpr size_t kLeast = size_t{64} << 10;  // smaller buffers are as fast from malloc
  static constexpr size_t kMax = 8;

  class Kept {
   public:
    // An unused buffer that is large enough, but not much too large; null if there is none.
    std::unique_ptr<Buffer> take(size_t bytes) EXCLUDES_LOCK(mutex_) {
      MutexLock lock(mutex_);
      for (std::unique_ptr<Buffer>& each : unused_) {
        if (each->capacity() < bytes || each->capacity() / 2 > bytes) continue;
        std::swap(each, unused_.back());
        std::unique_ptr<Buffer> taken = std::move(unused_.back());
        unused_.pop_back();
        return taken;
      }
      return nullptr;
    }
    void put(std::unique_ptr<Buffer> buffer) EXCLUDES_LOCK(mutex_) {
      std::unique_ptr<Buffer> oldest;  // freed after the lock is released
      MutexLock lock(mutex_);
      unused_.push_back(std::move(buffer));
      if (unused_.size() <= kMax) return;
      oldest = std::move(unused_.front());
      unused_.erase(unused_.begin());
    }
    size_t bytes() EXCLUDES_LOCK(mutex_) {
      MutexLock lock(mutex_);
      size_t sum = 0;
      for (const std::unique_ptr<Buffer>& each : unused_) sum += each->capacity();
      return sum;
    }
    void trim(size_t most) EXCLUDES_LOCK(mutex_) {
      MutexLock lock(mutex_);
      size_t sum = 0;
      std::erase_if(unused_, [&](const std::unique_ptr<Buffer>& each) {
        const bool fits = sum + each->capacity() <= most;
        sum += fits ? each->capacity() : 0;
        return !fits;
      });
    }

   private:
    Mutex mutex_;
    std::vector<std::unique_ptr<Buffer>> unused_ GUARDED_BY(mutex_);
  };

  // Shared with the values, so that those that outlive this object know that it was destroyed.
  const std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

}  // namespace headrace
