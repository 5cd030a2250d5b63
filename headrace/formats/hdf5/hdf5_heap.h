// SPDX-License-Identifier: Apache-2.0
// The fractal heap in which large groups store their links.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "headrace/formats/hdf5/hdf5_file.h"

namespace headrace {

// For one thread.
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

}  // namespace headrace
