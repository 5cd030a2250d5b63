// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/pages.h"

#include <sys/mman.h>

#include <new>

namespace headrace {

void* map_pages(size_t bytes) {
  void* memory = mmap(nullptr, bytes == 0 ? 1 : bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

void unmap_pages(void* memory, size_t bytes) noexcept { munmap(memory, bytes == 0 ? 1 : bytes); }

}  // namespace headrace
