// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/pages.h"

#include <sys/mman.h>

#include <atomic>
#include <new>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace headrace {
namespace {

// ThreadSanitizer follows mmap and munmap, but not mremap. If one thread shrinks a block and
// another one then gets these pages by extending its own, it would report a race.
void* remap(void* memory, size_t bytes, size_t new_bytes) {
#if defined(__SANITIZE_THREAD__)
  static char order;
  __tsan_release(&order);
#endif
  void* moved = mremap(memory, bytes, new_bytes, MREMAP_MAYMOVE);
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(&order);
#endif
  return moved;
}

std::atomic<size_t> mapped{0};

// Huge pages are requested for this size or more: a batch or a large read is written from start to
// end, and small pages would cost a TLB miss every few rows, and a page fault per page at first.
constexpr size_t kHugeBytes = size_t{4} << 20;

}  // namespace

void* map_pages(size_t bytes) {
  void* memory = mmap(nullptr, bytes == 0 ? 1 : bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  if (bytes >= kHugeBytes) madvise(memory, bytes, MADV_HUGEPAGE);  // if the system has them
  mapped.fetch_add(bytes, std::memory_order_relaxed);
  return memory;
}

void* resize_pages(void* memory, size_t bytes, size_t new_bytes) noexcept {
  void* moved = remap(memory, bytes == 0 ? 1 : bytes, new_bytes == 0 ? 1 : new_bytes);
  if (moved == MAP_FAILED) return nullptr;
  if (bytes < kHugeBytes && new_bytes >= kHugeBytes) madvise(moved, new_bytes, MADV_HUGEPAGE);
  mapped.fetch_add(new_bytes - bytes, std::memory_order_relaxed);  // modulo 2^64
  return moved;
}

void unmap_pages(void* memory, size_t bytes) noexcept {
  munmap(memory, bytes == 0 ? 1 : bytes);
  mapped.fetch_sub(bytes, std::memory_order_relaxed);
}

size_t mapped_bytes() { return mapped.load(std::memory_order_relaxed); }

}  // namespace headrace
