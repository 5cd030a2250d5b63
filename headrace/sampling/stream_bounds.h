// SPDX-License-Identifier: Apache-2.0
// Where streams begin (Note [Streams] in streams.h): the mapping from rows of batches to records of
// streams, and the blocks of each stream. Pure arithmetic, immutable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "headrace/sampling/block_sequence.h"

namespace headrace {

// How many rows of each batch come from each stream.
class StreamRows {
 public:
  StreamRows(int64_t records, int64_t global_batch, int64_t streams)
      : records_(records), batch_(global_batch), streams_(streams) {}

  struct Place {
    int64_t stream = 0, record = 0;  // in the stream, in the order of an epoch
  };
  Place at(int64_t position) const {
    const int64_t batch = position / batch_, row = position % batch_;
    const int64_t count = size_of(batch);
    const int64_t stream = stream_of(row, count);
    return {stream, drawn(stream, batch) + row - first_row(stream, count)};
  }

  // Records of a batch.
  int64_t size_of(int64_t batch) const { return std::min(batch_, records_ - batch * batch_); }
  // Rows of a batch of `count` before those of a stream.
  int64_t first_row(int64_t stream, int64_t count) const { return count * stream / streams_; }
  int64_t stream_of(int64_t row, int64_t count) const { return ((row + 1) * streams_ - 1) / count; }
  // Records of a stream in the batches before this one; past the last batch, all of them.
  int64_t drawn(int64_t stream, int64_t batch) const {
    const int64_t whole = std::min(batch, records_ / batch_);
    const int64_t last = batch > whole ? records_ % batch_ : 0;
    return whole * rows(stream, batch_) + rows(stream, last);
  }
  // Records of all streams before this one, in the sequence of blocks.
  int64_t records_before(int64_t stream) const {
    return records_ / batch_ * first_row(stream, batch_) + first_row(stream, records_ % batch_);
  }

 private:
  int64_t rows(int64_t stream, int64_t count) const {
    return first_row(stream + 1, count) - first_row(stream, count);
  }
  int64_t records_, batch_, streams_;
};

// The blocks of each stream: the sequence of blocks, split.
class StreamBounds {
 public:
  // The arguments must outlive it.
  StreamBounds(const BlockTable& blocks, const StreamRows& rows, int64_t streams, uint64_t key)
      : blocks_(blocks), sequence_(blocks, key) {
    for (int64_t stream = 0; stream <= streams; ++stream) {
      const BlockSequence::Found found = sequence_.find(rows.records_before(stream));
      const bool inside = found.records > 0;
      bounds_.push_back(
          {found.place, inside ? sequence_.block_at(found.place) : -1, found.records});
    }
  }

  int64_t blocks_of(int64_t stream) const {
    const Bound &begin = bounds_[size_t(stream)], &end = bounds_[size_t(stream) + 1];
    return end.place - begin.place + (end.records > 0 ? 1 : 0);
  }
  // The i-th block of a stream.
  int64_t block(int64_t stream, int64_t i) const {
    return sequence_.block_at(bounds_[size_t(stream)].place + i);
  }
  // The stream's records in a block. REQUIRES: the block belongs to the stream.
  RecordRange records(int64_t stream, int64_t block) const {
    RecordRange range = blocks_[block];
    const Bound &begin = bounds_[size_t(stream)], &end = bounds_[size_t(stream) + 1];
    if (end.block == block) range.end = range.begin + end.records;
    if (begin.block == block) range.begin += begin.records;
    return range;
  }
  int64_t size_of(int64_t stream, int64_t block) const {
    int64_t size = blocks_.size_of(block);
    const Bound &begin = bounds_[size_t(stream)], &end = bounds_[size_t(stream) + 1];
    if (end.block == block) size = end.records;
    if (begin.block == block) size -= begin.records;
    return size;
  }

 private:
  struct Bound {
    int64_t place = 0;    // index in the sequence of blocks
    int64_t block = -1;   // the block that is split; -1: none
    int64_t records = 0;  // of that block, before the cut: they belong to the previous stream
  };
  const BlockTable& blocks_;
  const BlockSequence sequence_;
  std::vector<Bound> bounds_;  // where each stream begins, and where the last one ends
};

}  // namespace headrace
