// SPDX-License-Identifier: Apache-2.0
// Memory straight from the system, page by page: zeroed, and returned at once when it is freed.
//
// Note [Why large memory is mapped]: malloc serves large blocks from the heaps of its threads, once
// a block of that size has been freed anywhere in the process. Memory freed there mostly stays with
// the process: decoding camera photos on one thread left 190 MiB behind a memory_limit of 96 MiB.
// So whatever grows with a picture or a file comes from here. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

// Smaller blocks are malloc's.
inline constexpr size_t kLargeBytes = size_t{1} << 20;

// Never null. Throws std::bad_alloc.
void* map_pages(size_t bytes);
// The same pages with more or fewer of them, perhaps elsewhere: what remains keeps its content,
// what is added is zeros. Null where the system has no more; then nothing has changed. REQUIRES:
// mapped with `bytes`.
void* resize_pages(void* memory, size_t bytes, size_t new_bytes) noexcept;
// REQUIRES: the same number of bytes.
void unmap_pages(void* memory, size_t bytes) noexcept;
// By this process now; for tests.
size_t mapped_bytes();

}  // namespace headrace
