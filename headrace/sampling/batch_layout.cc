// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/batch_layout.h"

#include <algorithm>
#include <string>
#include <utility>

#include "headrace/base/error.h"

namespace headrace {
namespace {

const ErrorCode kIndivisible{
    "HR0720", ErrorKind::kConfig, "global batch not divisible by the ranks",
    "Every rank takes an equal slice of each global batch, so that the order of records does not "
    "depend on the number of ranks. Choose a global batch size that is a multiple of the number of "
    "ranks. If that number varies, use uneven=True: slices then differ by at most one record, and "
    "batch.weight scales the loss; uneven=\"pad\" adds an invalid row to shorter slices. Each rank "
    "needs at least one record of every batch."};

const ErrorCode kEmptyRank{
    "HR0721", ErrorKind::kConfig, "last batch smaller than the number of ranks",
    "With last_batch=\"keep\", the remaining records of an epoch are split over the ranks; here, "
    "some ranks would get none, and training would hang or diverge. Use last_batch=\"drop\" or "
    "last_batch=\"pad\", or another batch size."};

const ErrorCode kCutGroup{
    "HR0723", ErrorKind::kConfig, "batch not divisible into groups",
    "A transform that mixes rows of a batch works on groups of a fixed number of rows, so that "
    "its result depends neither on the number of ranks nor on where a run was resumed. Each "
    "rank's batch must be a multiple of the group size. Choose another batch size, or another "
    "group size for the transform."};

}  // namespace

BatchLayout::BatchLayout(int64_t positions, int64_t global_batch, int rank, int world_size,
                         LastBatch last, int64_t group, Uneven uneven)
    : positions_(positions),
      global_batch_(global_batch),
      group_(group),
      rank_(rank),
      world_size_(world_size),
      last_(last),
      uneven_(uneven) {
  const bool divides = global_batch % world_size == 0;
  const bool may_differ = uneven != Uneven::kNo;
  if (may_differ ? global_batch < world_size : !divides) {
    raise(kIndivisible,
          "global_batch_size " + std::to_string(global_batch) + " over " +
              std::to_string(world_size) + " ranks",
          may_differ ? "use a larger global_batch_size"
                     : "use a multiple of the number of ranks, or uneven=True with batch.weight");
  }
  if (rank_batch() % group != 0 || (!divides && group > 1)) {
    raise(kCutGroup, "a batch of " + std::to_string(rank_batch()) +
                         (world_size > 1 ? " records per rank" : " records") +
                         " is not a multiple of the " + std::to_string(group) +
                         " that a transform mixes");
  }
  const int64_t left = positions < kEndless ? positions % global_batch : 0;
  if (last == LastBatch::kKeep && left > 0 && groups_in(left) < world_size) {
    raise(kEmptyRank,
          std::to_string(left) + " records" +
              (group > 1 ? ", in groups of " + std::to_string(group) + "," : "") + " remain for " +
              std::to_string(world_size) + " ranks (" + std::to_string(positions) +
              " records, global batch " + std::to_string(global_batch) + ")",
          "last_batch=\"drop\" or last_batch=\"pad\"");
  }
}

BatchLayout::BatchLayout(std::span<const int64_t> sizes, int rank, int world_size, int64_t group)
    : positions_(0),
      global_batch_(*std::ranges::max_element(sizes)),
      group_(group),
      rank_(rank),
      world_size_(world_size),
      last_(LastBatch::kKeep) {
  positions_ = std::ssize(sizes) * global_batch_;
  if (group > 1) {
    raise(kCutGroup, "the sampler sets the batch sizes, but a transform mixes groups of " +
                         std::to_string(group));
  }
  const int64_t least = *std::ranges::min_element(sizes);
  if (least < world_size) {
    raise(kEmptyRank,
          "the sampler's smallest batch has " + std::to_string(least) + " records for " +
              std::to_string(world_size) + " ranks",
          "use a larger budget, or fewer ranks");
  }
  auto made = std::make_shared<Sizes>();
  made->records.assign(sizes.begin(), sizes.end());
  int64_t records = 0, rows = 0;
  for (const int64_t size : sizes) {
    records += size;
    rows += size * (rank + 1) / world_size - size * rank / world_size;
    made->ends.push_back(records);
    made->row_ends.push_back(rows);
  }
  sizes_ = std::move(made);
}

int64_t BatchLayout::batches() const {
  const int64_t whole = positions_ / global_batch_;
  return last_ == LastBatch::kDrop || positions_ % global_batch_ == 0 ? whole : whole + 1;
}

BatchRange BatchLayout::range(int64_t batch) const {
  const int64_t first = batch * global_batch_;
  int64_t count = global_batch_;
  if (sizes_) count = sizes_->records[size_t(batch)];
  if (last_ == LastBatch::kKeep) count = std::min(count, positions_ - first);
  const int64_t groups = groups_in(count);
  const auto cut = [&](int64_t rank) {
    return first + std::min(count, groups * rank / world_size_ * group_);
  };
  const int64_t begin = cut(rank_), end = cut(rank_ + 1);
  const int64_t rows =
      uneven_ == Uneven::kPad ? (count + world_size_ - 1) / world_size_ : end - begin;
  return {begin, begin + rows, std::clamp(positions_, begin, end)};
}

int64_t BatchLayout::records_in(int64_t batch) const {
  if (sizes_) return sizes_->records[size_t(batch)];
  return std::min(global_batch_, positions_ - batch * global_batch_);
}

double BatchLayout::weight(int64_t batch) const {
  const BatchRange mine = range(batch);
  return static_cast<double>(mine.valid_end - mine.begin) * world_size_ /
         static_cast<double>(records_in(batch));
}

int64_t BatchLayout::records_before(int64_t batch) const {
  if (sizes_) return batch == 0 ? 0 : sizes_->ends[size_t(batch - 1)];
  return std::min(batch * global_batch_, positions_);
}

int64_t BatchLayout::full_rows() const {
  if (uneven_ == Uneven::kPad) return rank_batch();
  return global_batch_ * (rank_ + 1) / world_size_ - global_batch_ * rank_ / world_size_;
}

int64_t BatchLayout::rows_before(int64_t batch) const {
  if (batch == 0) return 0;
  if (sizes_) return sizes_->row_ends[size_t(batch - 1)];
  return (batch - 1) * full_rows() + range(batch - 1).size();
}

int64_t BatchLayout::position_of_row(int64_t row) const {
  int64_t batch = row / full_rows();
  if (sizes_) batch = std::ranges::upper_bound(sizes_->row_ends, row) - sizes_->row_ends.begin();
  return range(batch).begin + row - rows_before(batch);
}

}  // namespace headrace
