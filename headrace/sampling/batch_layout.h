// SPDX-License-Identifier: Apache-2.0
// The positions of an epoch that make up batch k of a rank. Pure arithmetic.
//
// Global batch k is positions [k*G, (k+1)*G); rank r of W takes the r-th of W equal slices of the
// batch. So the global order does not depend on W, and a run can resume with a different number of
// ranks. If steps work on groups of positions (Note [Groups of positions] in ops/op.h), slices
// begin and end with groups, even in a short last batch.
//
// If the sampler decides how many records each batch has (Sampler::batch_sizes), G is the largest
// batch size, and batch k is the first sizes[k] of its G positions; ranks take equal slices of
// these sizes[k] positions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace headrace {

// Positions of an epoch without an end: integers that a double holds exactly, because states are
// JSON. Its last batch is never reached.
constexpr int64_t kEndless = int64_t{1} << 53;

enum class LastBatch : uint8_t {
  kKeep,  // the remainder, split over the ranks as evenly as possible
  kDrop,  // dropped
  kPad,   // padded with the epoch's first records, `valid` false
};

// The policy for world sizes that do not divide the global batch.
enum class Uneven : uint8_t {
  kNo,   // rejected
  kYes,  // slices differ by at most one row
  kPad,  // shorter slices are padded with the row after their last one, `valid` false
};

struct BatchRange {
  int64_t begin = 0, end = 0;  // positions, which may exceed the epoch's size
  int64_t valid_end = end;     // the rest is padding, and not counted
  int64_t size() const { return end - begin; }
};

class BatchLayout {
 public:
  // Throws HR0720 if the ranks do not divide the global batch but must, or outnumber its records;
  // HR0721 if the kept last batch has fewer groups than there are ranks (a rank would have none)
  // and positions are fewer than kEndless;
  // HR0723 if a rank's batch is not a multiple of the group.
  BatchLayout(int64_t positions, int64_t global_batch, int rank, int world_size, LastBatch last,
              int64_t group = 1, Uneven uneven = Uneven::kNo);

  // Batches of these sizes. Throws HR0721 if one has fewer records than there are ranks, HR0723 if
  // there are groups. REQUIRES: sizes are not empty, and positive.
  BatchLayout(std::span<const int64_t> sizes, int rank, int world_size, int64_t group);

  int64_t positions() const { return positions_; }
  int64_t global_batch() const { return global_batch_; }  // the largest
  int64_t rank_batch() const { return (global_batch_ + world_size_ - 1) / world_size_; }
  int64_t batches() const;
  BatchRange range(int64_t batch) const;
  // Weight of the mean loss of this rank's records of a batch, so that the mean over the ranks is
  // the mean over the batch: this rank's record count divided by that of an equal slice.
  double weight(int64_t batch) const;
  // Records of all ranks in the batches before this one, and those of this rank.
  int64_t records_before(int64_t batch) const;
  int64_t rows_before(int64_t batch) const;
  // The epoch position of this rank's row with that number. REQUIRES: the row exists.
  int64_t position_of_row(int64_t row) const;

 private:
  struct Sizes {
    std::vector<int64_t> records, ends, row_ends;  // by batch: cumulative, of this rank
  };
  int64_t full_rows() const;                // of a full batch
  int64_t records_in(int64_t batch) const;  // of all ranks, without padding
  int64_t groups_in(int64_t positions) const { return (positions + group_ - 1) / group_; }
  int64_t positions_, global_batch_, group_;
  int rank_, world_size_;
  LastBatch last_;
  Uneven uneven_ = Uneven::kNo;
  std::shared_ptr<const Sizes> sizes_;  // null: all are equal. Shared by copies
};

}  // namespace headrace
