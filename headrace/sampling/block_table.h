// SPDX-License-Identifier: Apache-2.0
// The records of each block of a source, in about five bytes per block. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/sampling/sampler.h"

namespace headrace {

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

}  // namespace headrace
