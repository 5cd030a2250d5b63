// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/view.h"

namespace headrace {

std::vector<int64_t> viewed_block_ends(const Source& base, int64_t size,
                                       const RecordViewed& viewed) {
  const std::vector<int64_t> of_base = base.block_ends();
  const auto block_of = [&](int64_t index) {
    return std::ranges::upper_bound(of_base, viewed(index)) - of_base.begin();
  };
  std::vector<int64_t> ends;
  for (int64_t begin = 0; begin < size;) {
    const auto block = block_of(begin);
    int64_t end = begin + 1;
    while (end < size && block_of(end) == block) ++end;
    ends.push_back(end);
    if (ends.size() > 2 * of_base.size()) return usual_block_ends(size);
    begin = end;
  }
  return ends;
}

void announce_viewed(const Source& base, int64_t begin, int64_t end,
                     const std::vector<bool>& wanted, const RecordViewed& viewed) {
  std::vector<int64_t> records;
  for (int64_t i = begin; i < end; ++i) records.push_back(viewed(i));
  std::ranges::sort(records);
  records.erase(std::ranges::unique(records).begin(), records.end());
  std::vector<std::pair<int64_t, int64_t>> runs;
  for (const int64_t record : records) {
    if (runs.empty() || runs.back().second != record) runs.emplace_back(record, record);
    ++runs.back().second;
  }
  const bool scattered = runs.size() > 1 && records.size() < 2 * runs.size();
  if (scattered) return;
  for (const auto& [first, last] : runs) base.will_read(first, last, wanted);
}

}  // namespace headrace
