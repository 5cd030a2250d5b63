// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/batch_layout.h"

#include <algorithm>
#include <string>

#include "headrace/base/error.h"

namespace headrace {
namespace {

const ErrorCode kIndivisible{
    "HR0720", ErrorKind::kConfig, "ranks do not divide the global batch",
    "Every rank takes an equal slice of each global batch, so that the order of records does not "
    "depend on the number of ranks. Choose a global batch size that is a multiple of it."};

const ErrorCode kEmptyRank{
    "HR0721", ErrorKind::kConfig, "last batch smaller than the number of ranks",
    "With last_batch=\"keep\" the records that are left at the end of an epoch are split over the "
    "ranks; here some rank would get none, and training would hang or diverge. Use "
    "last_batch=\"drop\" or last_batch=\"pad\", or another batch size."};

const ErrorCode kCutGroup{
    "HR0723", ErrorKind::kConfig, "batch and groups do not fit",
    "A step that mixes rows of a batch works on groups of a fixed number of positions, so that what "
    "it does depends neither on the number of ranks nor on where a run was resumed. Each rank's "
    "batch has to be a multiple of the group. Choose another batch size, or another group size of "
    "the step."};

}  // namespace

BatchLayout::BatchLayout(int64_t positions, int64_t global_batch, int rank, int world_size,
                         LastBatch last, int64_t group)
    : positions_(positions),
      global_batch_(global_batch),
      group_(group),
      rank_(rank),
      world_size_(world_size),
      last_(last) {
  if (global_batch % world_size != 0) {
    raise(kIndivisible, "global_batch_size " + std::to_string(global_batch) + " over " +
                            std::to_string(world_size) + " ranks");
  }
  if (rank_batch() % group != 0) {
    raise(kCutGroup, "a batch of " + std::to_string(rank_batch()) +
                         (world_size > 1 ? " records a rank" : " records") +
                         " is no multiple of the " + std::to_string(group) + " that a step mixes");
  }
  const int64_t left = positions % global_batch;
  if (last == LastBatch::kKeep && left > 0 && groups_in(left) < world_size) {
    raise(kEmptyRank,
          std::to_string(left) + " records" +
              (group > 1 ? ", in groups of " + std::to_string(group) + "," : "") +
              " are left for " + std::to_string(world_size) + " ranks (" +
              std::to_string(positions) + " records, global batch " + std::to_string(global_batch) +
              ")",
          "last_batch=\"drop\" or last_batch=\"pad\"");
  }
}

int64_t BatchLayout::batches() const {
  const int64_t whole = positions_ / global_batch_;
  return last_ == LastBatch::kDrop || positions_ % global_batch_ == 0 ? whole : whole + 1;
}

BatchRange BatchLayout::range(int64_t batch) const {
  const int64_t first = batch * global_batch_;
  int64_t count = global_batch_;
  if (last_ == LastBatch::kKeep) count = std::min(count, positions_ - first);
  const int64_t groups = groups_in(count);
  const auto cut = [&](int64_t rank) {
    return first + std::min(count, groups * rank / world_size_ * group_);
  };
  return {cut(rank_), cut(rank_ + 1)};
}

}  // namespace headrace
