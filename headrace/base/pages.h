// SPDX-License-Identifier: Apache-2.0
// Memory mapped directly from the system (mmap): zeroed, and returned to the system as soon as it
// is freed.
//
// Note [Why large memory is mapped]: malloc serves large blocks from its per-thread heaps once a
// block of that size has been freed anywhere in the process. Memory freed there mostly stays with
// the process: decoding camera photos on one thread retained 190 MiB under a memory_limit of 96
// MiB. So memory whose size depends on an image or a file is mapped. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

// Smaller blocks come from malloc.
inline constexpr size_t kLargeBytes = size_t{1} << 20;

// Never null. Throws std::bad_alloc.
void* map_pages(size_t bytes);
// Grows or shrinks the mapping, which may move: the content that fits is kept, added bytes are
// zeros. Null if the system is out of memory; then nothing has changed. REQUIRES: mapped with
// `bytes`.
void* resize_pages(void* memory, size_t bytes, size_t new_bytes) noexcept;
// REQUIRES: mapped with `bytes`.
void unmap_pages(void* memory, size_t bytes) noexcept;
// Bytes currently mapped by map_pages() in this process; for tests.
size_t mapped_bytes();

}  // namespace headrace
