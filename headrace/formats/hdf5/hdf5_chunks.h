// SPDX-License-Identifier: Apache-2.0
// Positions of a dataset's chunks: 16 bytes per chunk in memory (24 if some were never written),
// read from any of the format's six index types.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "headrace/formats/hdf5/hdf5_file.h"
#include "headrace/formats/hdf5/hdf5_messages.h"
#include "headrace/sources/fingerprint.h"

namespace headrace {

struct Hdf5Chunk {
  uint64_t address = 0;
  uint32_t bytes = 0;  // size as stored
  uint32_t mask = 0;   // bit i: filter i was skipped
};

class Hdf5ChunkIndex {
 public:
  Hdf5ChunkIndex() = default;
  // `chunk_bytes`: of an unfiltered chunk. Throws Exception.
  Hdf5ChunkIndex(const Hdf5File& file, const Hdf5Layout& layout, const Hdf5Space& space,
                 uint64_t chunk_bytes, bool filtered);

  // Chunks along each dimension.
  const std::vector<uint64_t>& grid() const { return grid_; }
  // Whether every cell of the grid was written.
  bool is_full() const { return first_ != kHdf5Undefined || (cells_.empty() && !places_.empty()); }
  // The first written chunk among the cells [cell, end) of the grid, in row-major order. Sets
  // `cell` to its number.
  std::optional<Hdf5Chunk> next(uint64_t& cell, uint64_t end) const;
  void add_to(Fingerprint& print) const;

 private:
  std::vector<uint64_t> grid_;
  std::vector<uint64_t> cells_;  // of the places, ascending; empty if every cell has a place
  std::vector<Hdf5Chunk> places_;
  // A grid whose chunks are contiguous in the file, with these steps along its dimensions.
  std::vector<uint64_t> steps_;
  uint64_t first_ = kHdf5Undefined;
  uint32_t chunk_bytes_ = 0;
};

// --- The two array-like chunk indexes (hdf5_array_index.cc): fixed and extensible arrays ---

// Called for each element that has an address, with its number and contents. `bytes` is 0 if chunks
// are not filtered.
using Hdf5ElementUse =
    std::function<void(uint64_t number, uint64_t address, uint64_t bytes, uint32_t mask)>;

// Visit the first `limit` elements, in order. Throw Exception.
void visit_hdf5_fixed_array(const Hdf5File& file, uint64_t address, bool filtered, uint64_t limit,
                            const Hdf5ElementUse& use);
void visit_hdf5_extensible_array(const Hdf5File& file, uint64_t address, bool filtered,
                                 uint64_t limit, const Hdf5ElementUse& use);

}  // namespace headrace
