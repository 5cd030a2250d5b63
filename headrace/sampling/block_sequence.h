// SPDX-License-Identifier: Apache-2.0
// The blocks of a source in a sequence, in an order determined by a key. The records before any
// position are counted without visiting every block. Immutable, thread-safe.
//
// Blocks are numbered line by line in a table of kColumns columns; each line is rotated by its own
// amount. The sequence is the table's columns in a permuted order, so that any part of it has
// blocks from all over the source.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/base/permutation.h"
#include "headrace/sampling/sampler.h"

namespace headrace {

// The records of each block, in about five bytes per block.
class BlockTable {
 public:
  // ends: cumulative record counts after each block. Empty blocks are dropped, and one of more than
  // 2^31 records is split.
  explicit BlockTable(std::span<const int64_t> ends);

  int64_t blocks() const { return std::ssize(sizes_); }
  int64_t records() const { return records_; }
  int64_t size_of(int64_t block) const { return sizes_[size_t(block)]; }
  // Prefetches its size: in a permuted order it is not cached.
  void prefetch(int64_t block) const { __builtin_prefetch(&sizes_[size_t(block)]); }
  RecordRange operator[](int64_t block) const;
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  static constexpr int64_t kGroup = 16;
  std::vector<uint32_t> sizes_;
  std::vector<int64_t> begins_;  // first record of each group of kGroup blocks
  int64_t records_ = 0;
  uint64_t fingerprint_ = 0;
};

class BlockSequence {
 public:
  // References the table. REQUIRES: at least one block.
  BlockSequence(const BlockTable& blocks, uint64_t key);

  int64_t block_at(int64_t place) const;

  struct Found {
    int64_t place = 0;    // of the block with a record
    int64_t records = 0;  // in that block before it
  };
  // The record with `records` others before it in the sequence; past the last one, its end.
  Found find(int64_t records) const;

 private:
  static constexpr int64_t kColumns = 4096;
  int64_t block_in(int64_t column, int64_t i) const;  // the i-th of the column

  const BlockTable& blocks_;
  const uint64_t key_;
  const int64_t columns_, lines_;
  // Permutations of the columns; of the lines in a column that has all lines; and in one that does
  // not have the last line.
  const Permutation order_, whole_, short_;
  // Before each column, in their order: blocks and records; and the totals.
  std::vector<int64_t> places_, records_;
};

}  // namespace headrace
