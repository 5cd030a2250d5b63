// SPDX-License-Identifier: Apache-2.0
// The positions of a container's records: twelve bytes of memory per record, in every format.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace headrace {

// A record's bytes: one contiguous range of a file, including the format's own framing.
struct Extent {
  size_t file = 0;
  uint64_t offset = 0, bytes = 0;
};

// Owns its data, or borrows it from a mapped index, whose pages all processes of a machine share.
class Extents {
 public:
  static constexpr uint32_t kLong = UINT32_MAX;  // marks lengths that are in longs()

  Extents() = default;
  // Borrows complete data. `ends`: the end of each file's records. `owner` keeps `offsets` and
  // `bytes` valid (shared: copies of an index borrow from one mapping). REQUIRES: `longs` has the
  // length of each record whose `bytes` is kLong, and no others.
  Extents(std::span<const uint64_t> offsets, std::span<const uint32_t> bytes,
          std::vector<int64_t> ends, std::map<int64_t, uint64_t> longs,
          std::shared_ptr<const void> owner)
      : ends_(std::move(ends)),
        long_(std::move(longs)),
        owner_(std::move(owner)),
        borrowed_offsets_(offsets),
        borrowed_bytes_(bytes) {}

  int64_t size() const { return static_cast<int64_t>(offsets().size()); }
  size_t files() const { return ends_.size(); }
  bool is_borrowed() const { return owner_ != nullptr; }

  // Adds a record of the current file; end_file() advances to the next file. REQUIRES:
  // !is_borrowed().
  void add(uint64_t offset, uint64_t bytes) {
    if (bytes >= kLong) long_[size()] = bytes;
    offsets_.push_back(offset);
    bytes_.push_back(static_cast<uint32_t>(std::min<uint64_t>(bytes, kLong)));
  }
  void end_file() { ends_.push_back(size()); }
  void append(const Extents& more) {
    for (const auto& [record, bytes] : more.long_) long_[size() + record] = bytes;
    for (const int64_t end : more.ends_) ends_.push_back(size() + end);
    offsets_.insert(offsets_.end(), more.offsets_.begin(), more.offsets_.end());
    bytes_.insert(bytes_.end(), more.bytes_.begin(), more.bytes_.end());
  }
  void shrink() {
    offsets_.shrink_to_fit();
    bytes_.shrink_to_fit();
  }

  // REQUIRES: 0 <= record < size(), and every file was ended.
  Extent operator[](int64_t record) const {
    const auto at = static_cast<size_t>(record);
    const uint32_t bytes = lengths()[at];
    return {.file = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), record) -
                                        ends_.begin()),
            .offset = offsets()[at],
            .bytes = bytes == kLong ? long_.at(record) : bytes};
  }
  // Prefetches a record's entry: in random order, it is usually not in the CPU's cache.
  void prefetch(int64_t record) const {
    __builtin_prefetch(&offsets()[static_cast<size_t>(record)]);
    __builtin_prefetch(&lengths()[static_cast<size_t>(record)]);
  }
  int64_t first_of(size_t file) const { return file == 0 ? 0 : ends_[file - 1]; }
  int64_t end_of(size_t file) const { return ends_[file]; }

  // The data, for serialization.
  std::span<const uint64_t> offsets() const { return owner_ ? borrowed_offsets_ : offsets_; }
  std::span<const uint32_t> lengths() const { return owner_ ? borrowed_bytes_ : bytes_; }
  const std::map<int64_t, uint64_t>& longs() const { return long_; }

 private:
  std::vector<uint64_t> offsets_;
  std::vector<uint32_t> bytes_;
  std::vector<int64_t> ends_;  // per file: cumulative record counts
  std::map<int64_t, uint64_t> long_;
  std::shared_ptr<const void> owner_;
  std::span<const uint64_t> borrowed_offsets_;
  std::span<const uint32_t> borrowed_bytes_;
};

}  // namespace headrace
