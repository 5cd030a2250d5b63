// SPDX-License-Identifier: Apache-2.0
// Accounts for the memory of encoded bytes: records read ahead or in flight, records given to
// workers, and buffers to be reused. Not thread-safe; ReadAhead calls it under its mutex.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// Memory of a record's buffers and open files. A video's table that several records share counts in
// part for each, so the result may be different at another time.
size_t bytes_of(const RecordData& data);

// Upper estimate of the next record's size from recent sizes, outliers ignored. A single giant does
// not count, or a thousand small records after it would wait for memory that they do not need. Not
// thread-safe; the owner's mutex protects it.
class ExpectedSize {
 public:
  void add(size_t bytes) {
    sizes_[seen_++ % kKept] = std::max<size_t>(bytes, 1);
    if (seen_ < kFew || seen_ % 8 == 0) expected_ = among(std::min(seen_, kKept));
  }
  // 0 before the first.
  size_t bytes() const { return expected_; }

 private:
  static constexpr size_t kKept = 64, kFew = 16;

  size_t among(size_t count) const {
    std::array<size_t, kKept> sorted = sizes_;
    const size_t giants = count < 4 ? 0 : 1 + count / 32;
    const auto place = sorted.begin() + static_cast<std::ptrdiff_t>(giants);
    std::nth_element(sorted.begin(), place, sorted.begin() + static_cast<std::ptrdiff_t>(count),
                     std::greater<>());
    return *place;
  }

  std::array<size_t, kKept> sizes_{};
  size_t seen_ = 0, expected_ = 0;
};

class ReadShare {
 public:
  // `async`: reads are asynchronous. Data read ahead then fills half of the share on purpose, and
  // must not delay what a worker reads itself.
  ReadShare(size_t bytes, bool async) : bytes_(bytes), async_(async) {}

  // Expected size of the next record.
  size_t expected() const { return sizes_.bytes() ? std::min(sizes_.bytes(), bytes_ / 2) : bytes_; }
  // Limit for a record that is read ahead.
  size_t allowance() const;
  bool fits(size_t bytes) const {
    return held + dropped + lent + spare_bytes_ + reading * expected() + bytes <= bytes_;
  }
  // For a record that a worker reads itself.
  bool has_room(size_t bytes) const {
    return async_ ? lent + bytes <= bytes_ / 4 * 3 : fits(bytes);
  }
  size_t in_use() const { return held + dropped + lent + spare_bytes_; }
  // A record of this size was read.
  void note(size_t bytes) { sizes_.add(bytes); }

  // Buffers to reuse. Keeping one moves from it if there is room; otherwise its buffers are
  // unchanged. Its files are closed.
  void reserve_spares();
  RecordData take_spare();
  void keep_spare(RecordData& data);
  // The same, for a record that is no longer used; very large ones are not kept, since small
  // records would hold their memory.
  void keep_used(RecordData& data);
  void drop_spares();

  size_t held = 0;     // by entries, ready or reserved
  size_t dropped = 0;  // by reads in progress that are no longer needed
  size_t lent = 0;     // to workers
  size_t reading = 0;  // records, by readers

 private:
  const size_t bytes_;
  const bool async_;
  ExpectedSize sizes_;
  std::vector<RecordData> spare_;
  size_t spare_bytes_ = 0;
};

}  // namespace headrace
