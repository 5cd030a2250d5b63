// SPDX-License-Identifier: Apache-2.0
// The file's heaps: the fractal heap in which large groups store their links, and the global heap
// of variable-length values.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/formats/hdf5/hdf5_file.h"

namespace headrace {

// The fractal heap. For one thread.
class Hdf5Heap {
 public:
  // Throws Exception.
  Hdf5Heap(const Hdf5File& file, uint64_t address);
  // The object with this identifier. Valid until the next call. Throws Exception.
  std::span<const uint8_t> object(std::span<const uint8_t> id);

 private:
  struct Block {
    uint64_t begin = 0;  // first address in the heap's own address space
    std::vector<uint8_t> bytes;
  };
  uint64_t row_bytes(unsigned row) const;  // of each block in that row of a doubling table
  // The address of the direct block that contains heap address `at`.
  uint64_t find(uint64_t at, uint64_t& begin, uint64_t& bytes);
  const std::vector<uint8_t>& indirect(uint64_t address, unsigned rows, uint64_t begin);
  const Block& direct(uint64_t address, uint64_t begin, uint64_t bytes);

  const Hdf5File& file_;
  uint64_t address_;
  uint32_t max_managed_ = 0;
  uint16_t width_ = 0;  // blocks in a row
  uint64_t first_bytes_ = 0, max_direct_ = 0;
  int offset_bytes_ = 0, size_bytes_ = 0;
  uint64_t root_ = kHdf5Undefined;
  unsigned root_rows_ = 0, direct_rows_ = 0, max_rows_ = 0;
  bool checked_ = false;  // direct blocks have checksums
  std::map<uint64_t, Block> direct_;
  std::map<uint64_t, std::vector<uint8_t>> indirect_;
  uint64_t kept_ = 0;  // total bytes of both caches
};

// --- Variable-length values (hdf5_global_heap.cc) ---
// An element has the length and position of its value, in one of the file's "global heap
// collections".

// An element of a dataset with variable-length values.
struct Hdf5Reference {
  uint32_t count = 0;    // number of its elements
  uint32_t index = 0;    // index in the collection
  uint64_t address = 0;  // address of the collection
  // Whether the value is empty.
  bool is_empty() const { return count == 0 || address == 0 || address == kHdf5Undefined; }
};
Hdf5Reference hdf5_reference(const Hdf5File& file, std::span<const uint8_t> element);

// The position after the value that was last read. The next value is usually there, so one read
// gets both. For one thread; must be reset before its file is closed.
struct Hdf5Place {
  const Hdf5File* file = nullptr;
  uint64_t address = 0;  // of the collection
  uint64_t size = 0;     // of the collection
  uint64_t next = 0;     // offset of the next value's header in it
};

// Reads a value of this size into `out`, unless it is empty, and sets `place` to the position after
// it.
Result<std::span<uint8_t>> read_hdf5_value(const Hdf5File& file, const Hdf5Reference& reference,
                                           uint64_t bytes, Buffer& out, Hdf5Place& place);

}  // namespace headrace
