// SPDX-License-Identifier: Apache-2.0
// The blocks of a source in a row, in an order that a key decides. The records before any position
// are counted without visiting every block. Immutable, thread-safe.
//
// Blocks are numbered line by line in a table of kColumns columns; each line is rotated by a number
// of its own. The row is the table's columns in a permuted order, so that a stretch of it has
// blocks from all over the source.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/base/permutation.h"
#include "headrace/sampling/block_table.h"

namespace headrace {

class RowOfBlocks {
 public:
  // It refers to the table. REQUIRES: a block.
  RowOfBlocks(const BlockTable& blocks, uint64_t key);

  int64_t block_at(int64_t place) const;

  struct Found {
    int64_t place = 0;    // of the block with a record
    int64_t records = 0;  // of that block before it
  };
  // The record with so many others before it in the row; where there is none, the row's end.
  Found find(int64_t records) const;

 private:
  static constexpr int64_t kColumns = 4096;
  int64_t block_in(int64_t column, int64_t i) const;  // the i-th of the column

  const BlockTable& blocks_;
  const uint64_t key_;
  const int64_t columns_, lines_;
  const Permutation order_, whole_, short_;  // of columns; of lines, in one with all and others
  // Before each column, in the order of the row: blocks and records; and in all.
  std::vector<int64_t> places_, records_;
};

}  // namespace headrace
