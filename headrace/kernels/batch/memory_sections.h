// SPDX-License-Identifier: Apache-2.0
// One block of memory for several arrays, each of which begins at a multiple of 256 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace headrace {

// Returns consecutive sections of a block.
class MemorySections {
 public:
  // Null memory: only counts bytes. REQUIRES: memory is aligned to 256 bytes.
  explicit MemorySections(uint8_t* memory) : memory_(memory) {}

  template <class T>
  void take(T*& section, int64_t bytes) {
    if (memory_) section = reinterpret_cast<T*>(memory_ + next_);
    next_ = (next_ + bytes + 255) / 256 * 256;
  }
  int64_t bytes() const { return next_; }

 private:
  uint8_t* memory_;
  int64_t next_ = 0;
};

// An array at an offset of such a block.
template <class T>
void write_array(uint8_t* memory, size_t at, const std::vector<T>& values) {
  if (!values.empty()) std::memcpy(memory + at, values.data(), values.size() * sizeof(T));
}
template <class T>
const T* array_at(const uint8_t* memory, size_t at) {
  return reinterpret_cast<const T*>(memory + at);
}

}  // namespace headrace
