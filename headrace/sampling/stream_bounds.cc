// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/stream_bounds.h"

namespace headrace {

StreamBounds::StreamBounds(const BlockTable& blocks, const StreamRows& rows, int64_t streams,
                           uint64_t key)
    : blocks_(blocks), row_(blocks, key) {
  for (int64_t stream = 0; stream <= streams; ++stream) {
    const BlockSequence::Found found = row_.find(rows.records_before(stream));
    const bool inside = found.records > 0;
    bounds_.push_back({found.place, inside ? row_.block_at(found.place) : -1, found.records});
  }
}

int64_t StreamBounds::blocks_of(int64_t stream) const {
  const Bound &begin = bounds_[size_t(stream)], &end = bounds_[size_t(stream) + 1];
  return end.place - begin.place + (end.records > 0 ? 1 : 0);
}

RecordRange StreamBounds::records(int64_t stream, int64_t block) const {
  RecordRange range = blocks_[block];
  const Bound &begin = bounds_[size_t(stream)], &end = bounds_[size_t(stream) + 1];
  if (end.block == block) range.end = range.begin + end.records;
  if (begin.block == block) range.begin += begin.records;
  return range;
}

int64_t StreamBounds::size_of(int64_t stream, int64_t block) const {
  int64_t size = blocks_.size_of(block);
  const Bound &begin = bounds_[size_t(stream)], &end = bounds_[size_t(stream) + 1];
  if (end.block == block) size = end.records;
  if (begin.block == block) size -= begin.records;
  return size;
}

}  // namespace headrace
