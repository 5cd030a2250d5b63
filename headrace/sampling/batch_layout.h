// SPDX-License-Identifier: Apache-2.0
// Which positions of an epoch make up batch k of a rank. Pure arithmetic.
//
// Global batch k is positions [k*G, (k+1)*G); rank r of W takes the r-th of W equal slices of it.
// So the global order does not mention W, and a run resumes on another number of ranks. Where steps
// work on groups of positions (Note [Groups of positions] in ops/op.h), slices begin and end with
// groups, also those of a short last batch.
#pragma once

#include <cstdint>

namespace headrace {

enum class LastBatch : uint8_t {
  kKeep,  // what is left, split over the ranks as evenly as it goes
  kDrop,  // left out
  kPad,   // filled up with the epoch's first records, `valid` false
};

struct BatchRange {
  int64_t begin = 0, end = 0;  // positions; those at or beyond the epoch's size are padding
  int64_t size() const { return end - begin; }
};

class BatchLayout {
 public:
  // Throws HR0720 when the ranks do not divide the global batch, HR0721 when the kept last batch
  // has fewer groups than there are ranks (a rank would have none), HR0723 when a rank's batch is
  // no multiple of the group.
  BatchLayout(int64_t positions, int64_t global_batch, int rank, int world_size, LastBatch last,
              int64_t group = 1);

  int64_t positions() const { return positions_; }
  int64_t global_batch() const { return global_batch_; }
  int64_t rank_batch() const { return global_batch_ / world_size_; }
  int64_t batches() const;
  BatchRange range(int64_t batch) const;

 private:
  int64_t groups_in(int64_t positions) const { return (positions + group_ - 1) / group_; }
  int64_t positions_, global_batch_, group_;
  int rank_, world_size_;
  LastBatch last_;
};

}  // namespace headrace
