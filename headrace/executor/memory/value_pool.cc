// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/memory/value_pool.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/base/pages.h"
#include "headrace/executor/memory/slots.h"
#include "headrace/executor/threads/thread_pool.h"

namespace headrace {
namespace {

// Smaller values come from malloc, which reuses memory itself; they are only counted.
constexpr size_t kMinBytes = size_t{256} << 10;
constexpr size_t kMaxUnused = 256;  // blocks

constexpr size_t kPage = 4096;

size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

class ValuePool::Blocks {
 public:
  struct Block {
    void* memory = nullptr;
    size_t bytes = 0;  // whole pages
  };

  explicit Blocks(size_t max_bytes) : max_bytes_(max_bytes) { unused_.reserve(kMaxUnused); }
  ~Blocks() {
    for (const Block& block : unused_) unmap_pages(block.memory, block.bytes);
  }

  // Counts more bytes in use; frees as many unused blocks as no longer fit.
  void use(size_t bytes) EXCLUDES_LOCK(mutex_) {
    used_bytes_ += bytes;
    if (fits(0) || unused_bytes_ == 0) return;
    MutexLock lock(mutex_);
    while (!unused_.empty() && !fits(0)) {
      const Block freed = unused_.back();
      unused_.pop_back();
      unused_bytes_ -= freed.bytes;
      unmap_pages(freed.memory, freed.bytes);
    }
  }
  void release(size_t bytes) { used_bytes_ -= bytes; }

  // The unused block nearest in size, if any; it no longer counts as unused.
  Block take(size_t bytes) EXCLUDES_LOCK(mutex_) {
    MutexLock lock(mutex_);
    if (unused_.empty()) return {};
    const auto nearest = std::ranges::min_element(unused_, {}, [bytes](const Block& block) {
      return std::max(block.bytes, bytes) - std::min(block.bytes, bytes);
    });
    const Block taken = std::exchange(*nearest, unused_.back());
    unused_.pop_back();
    unused_bytes_ -= taken.bytes;
    return taken;
  }
  // False if there is no room: the caller frees it.
  bool give_back(Block block) EXCLUDES_LOCK(mutex_) {
    MutexLock lock(mutex_);
    if (unused_.size() == kMaxUnused || !fits(block.bytes)) return false;
    unused_.push_back(block);  // reserved: dropping a value must not allocate
    unused_bytes_ += block.bytes;
    return true;
  }
  size_t unused_bytes() const { return unused_bytes_; }

 private:
  bool fits(size_t more) const { return used_bytes_ + unused_bytes_ + more <= max_bytes_; }

  const size_t max_bytes_;
  mutable Mutex mutex_;
  std::vector<Block> unused_ GUARDED_BY(mutex_);
  std::atomic<size_t> used_bytes_{0}, unused_bytes_{0};
};

ValuePool::ValuePool(size_t max_bytes) : blocks_(std::make_shared<Blocks>(max_bytes)) {}

std::shared_ptr<void> ValuePool::take(size_t bytes) {
  const bool is_small = bytes < kMinBytes;
  const size_t size = is_small ? bytes : whole_pages(bytes);
  Blocks::Block block = is_small ? Blocks::Block{} : blocks_->take(size);
  blocks_->use(size);
  try {
    if (block.memory && block.bytes != size) {
      void* resized = resize_pages(block.memory, block.bytes, size);
      if (!resized) unmap_pages(block.memory, block.bytes);
      block.memory = resized;
    }
    if (!block.memory) {
      block.memory =
          is_small ? ::operator new(std::max<size_t>(size, 1), kValueAlignment) : map_pages(size);
    }
  } catch (...) {
    blocks_->release(size);
    throw;
  }
  poison(block.memory, size);
  // The pointer frees the memory even if allocating the pointer fails.
  return {block.memory, [size, is_small, pool = std::weak_ptr<Blocks>(blocks_)](void* memory) {
            // In a forked child the lock may be held by a thread that does not exist there.
            const auto blocks = forked_from_running_engine() ? nullptr : pool.lock();
            if (blocks) blocks->release(size);
            if (is_small) {
              ::operator delete(memory, kValueAlignment);
            } else if (!blocks || !blocks->give_back({memory, size})) {
              unmap_pages(memory, size);
            }
          }};
}

size_t ValuePool::unused_bytes() const { return blocks_->unused_bytes(); }

}  // namespace headrace
