// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/pages.h"

#include <sys/mman.h>

#include <atomic>
#include <new>

namespace headrace {
namespace {

std::atomic<size_t> mapped{0};

}  // namespace

void* map_pages(size_t bytes) {
  void* memory = mmap(nullptr, bytes == 0 ? 1 : bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mapped.fetch_add(bytes, std::memory_order_relaxed);
  return memory;
}

void unmap_pages(void* memory, size_t bytes) noexcept {
  munmap(memory, bytes == 0 ? 1 : bytes);
  mapped.fetch_sub(bytes, std::memory_order_relaxed);
}

size_t mapped_bytes() { return mapped.load(std::memory_order_relaxed); }

}  // namespace headrace
