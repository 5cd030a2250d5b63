// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/block_table.h"

#include <algorithm>

#include "headrace/base/random.h"

namespace headrace {

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
