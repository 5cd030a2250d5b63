// SPDX-License-Identifier: Apache-2.0
// The blocks of a source in a sequence, in an order determined by a key. The records before any
// position are counted without visiting every block. Immutable, thread-safe.
//
// Blocks are numbered line by line in a table of kColumns columns; each line is rotated by its own
// amount. The row is the table's columns in a permuted order, so that any part of it has blocks
// from all over the source.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/base/permutation.h"
#include "headrace/sampling/block_table.h"

namespace headrace {

class BlockSequence {
 public:
  // References the table. REQUIRES: at least one block.
  BlockSequence(const BlockTable& blocks, uint64_t key);

  int64_t block_at(int64_t place) const;

  struct Found {
    int64_t place = 0;    // of the block with a record
    int64_t records = 0;  // in that block before it
  };
  // The record with `records` others before it in the row; past the last one, the row's end.
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
  // Before each column, in row order: blocks and records; and the totals.
  std::vector<int64_t> places_, records_;
};

}  // namespace headrace
