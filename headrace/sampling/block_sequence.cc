// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/block_sequence.h"

#include <algorithm>

#include "headrace/base/random.h"

namespace headrace {
namespace {

const uint64_t kColumnKey = hash_name("block columns"), kLineKey = hash_name("block lines"),
               kTurnKey = hash_name("block turns");

int64_t turn_of(uint64_t key, int64_t line, int64_t columns) {
  return static_cast<int64_t>(mix64(mix64(key, kTurnKey), static_cast<uint64_t>(line)) %
                              static_cast<uint64_t>(columns));
}

}  // namespace

BlockSequence::BlockSequence(const BlockTable& blocks, uint64_t key)
    : blocks_(blocks),
      key_(key),
      columns_(std::min(blocks.blocks(), kColumns)),
      lines_((blocks.blocks() + columns_ - 1) / columns_),
      order_(columns_, mix64(key, kColumnKey)),
      whole_(lines_, mix64(key, kLineKey)),
      short_(std::max<int64_t>(lines_ - 1, 1), mix64(key, kLineKey)),
      places_(1),
      records_(1) {
  std::vector<int64_t> counts(size_t(columns_), 0), sums(size_t(columns_), 0);
  for (int64_t line = 0; line < lines_; ++line) {
    int64_t column = turn_of(key, line, columns_);
    const int64_t begin = line * columns_, end = std::min(begin + columns_, blocks.blocks());
    for (int64_t block = begin; block < end; ++block) {
      ++counts[size_t(column)];
      sums[size_t(column)] += blocks.size_of(block);
      if (++column == columns_) column = 0;
    }
  }
  for (int64_t i = 0; i < columns_; ++i) {
    const auto column = size_t(order_(i));
    places_.push_back(places_.back() + counts[column]);
    records_.push_back(records_.back() + sums[column]);
  }
}

int64_t BlockSequence::block_in(int64_t column, int64_t i) const {
  const int64_t number = order_(column);
  const int64_t count = places_[size_t(column) + 1] - places_[size_t(column)];
  const int64_t line = count == lines_ ? whole_(i) : short_(i);
  int64_t at = number - turn_of(key_, line, columns_);
  if (at < 0) at += columns_;
  return line * columns_ + at;
}

int64_t BlockSequence::block_at(int64_t place) const {
  const auto column = std::ranges::upper_bound(places_, place) - places_.begin() - 1;
  return block_in(column, place - places_[size_t(column)]);
}

BlockSequence::Found BlockSequence::find(int64_t records) const {
  if (records >= records_.back()) return {places_.back(), 0};
  const auto column = std::ranges::upper_bound(records_, records) - records_.begin() - 1;
  int64_t left = records - records_[size_t(column)];
  for (int64_t i = 0;; ++i) {
    const int64_t size = blocks_.size_of(block_in(column, i));
    if (left < size) return {places_[size_t(column)] + i, left};
    left -= size;
  }
}

BlockTable::BlockTable(std::span<const int64_t> ends) {
  constexpr int64_t kMax = int64_t{1} << 31;
  sizes_.reserve(ends.size());
  for (const int64_t end : ends) {
    while (records_ < end) {
      const int64_t size = std::min(end - records_, kMax);
      if (blocks() % kGroup == 0) begins_.push_back(records_);
      sizes_.push_back(static_cast<uint32_t>(size));
      records_ += size;
      fingerprint_ = mix64(fingerprint_, static_cast<uint64_t>(records_));
    }
  }
}

RecordRange BlockTable::operator[](int64_t block) const {
  int64_t begin = begins_[size_t(block / kGroup)];
  for (int64_t i = block / kGroup * kGroup; i < block; ++i) begin += size_of(i);
  return {begin, begin + size_of(block)};
}

}  // namespace headrace
