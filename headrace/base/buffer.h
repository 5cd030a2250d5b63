// SPDX-License-Identifier: Apache-2.0
// Owned, 64-byte aligned bytes that grow and are reused. Contents are unspecified after a resize.
//
// A Buffer always has kPadding readable and writable bytes after its size: vector loops and bit
// readers may read past the end, but never use those bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "headrace/base/pages.h"

namespace headrace {

struct FreeBuffer {
  size_t mapped = 0;  // bytes; 0: not mapped
  void operator()(uint8_t* memory) const {
    if (mapped) {
      unmap_pages(memory, mapped);
    } else {
      ::operator delete(memory, std::align_val_t{64});
    }
  }
};

class Buffer {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kPadding = 64;

  Buffer() = default;
  explicit Buffer(size_t size) { resize(size); }
  Buffer(Buffer&& other) noexcept
      : memory_(std::move(other.memory_)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    memory_ = std::move(other.memory_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  uint8_t* data() { return memory_.get(); }
  const uint8_t* data() const { return memory_.get(); }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  std::span<const uint8_t> bytes() const { return {data(), size_}; }

  // Reuses the memory if it is large enough. Throws std::bad_alloc.
  void resize(size_t size) {
    if (size > SIZE_MAX - kPadding) throw std::bad_alloc();
    if (size > capacity_ || !memory_) {
      memory_.reset();
      size_ = capacity_ = 0;
      memory_ = allocate(size + kPadding);
      capacity_ = size;
    }
    size_ = size;
    std::memset(memory_.get() + size, 0, kPadding);
  }
  void free() { *this = Buffer(); }

 private:
  using Memory = std::unique_ptr<uint8_t, FreeBuffer>;

#if defined(__SANITIZE_ADDRESS__)
  static constexpr size_t kMapped = SIZE_MAX;  // ASan detects overruns only in heap blocks
#else
  static constexpr size_t kMapped = kLargeBytes;  // Note [Why large memory is mapped]
#endif
  static Memory allocate(size_t bytes) {
    if (bytes >= kMapped) return Memory(static_cast<uint8_t*>(map_pages(bytes)), FreeBuffer{bytes});
    return Memory(static_cast<uint8_t*>(::operator new(bytes, std::align_val_t{kAlignment})));
  }

  Memory memory_;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace headrace
