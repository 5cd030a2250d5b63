// SPDX-License-Identifier: Apache-2.0
// Replaces operator new in a test program: it calls before_allocation() before each allocation, by
// the test or by the library. Include it in exactly one file of the program.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <new>

namespace headrace {

// Defined by the test: counts the allocation, or makes it fail by throwing std::bad_alloc.
void before_allocation();

inline void* allocate_for_test(size_t size, size_t alignment) {
  before_allocation();
  const size_t units = (std::max<size_t>(size, 1) + alignment - 1) / alignment;
  if (void* memory = std::aligned_alloc(alignment, units * alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace headrace

// Not inlined: otherwise the compiler sees memory from `operator new` passed to free() and warns.
[[gnu::noinline]] void* operator new(size_t size) {
  return headrace::allocate_for_test(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
  return headrace::allocate_for_test(
      size, std::max<size_t>(__STDCPP_DEFAULT_NEW_ALIGNMENT__, static_cast<size_t>(alignment)));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
