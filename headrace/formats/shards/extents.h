// SPDX-License-Identifier: Apache-2.0
// Where the records of a container lie: twelve bytes a record, whatever the format.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace headrace {

// A record's bytes: one piece of one file, with whatever the format writes around its values.
struct Extent {
  size_t file = 0;
  uint64_t offset = 0, bytes = 0;
};

class Extents {
 public:
  int64_t size() const { return static_cast<int64_t>(offsets_.size()); }
  size_t files() const { return ends_.size(); }

  // A record of the file at hand. end_file() goes on to the next one.
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
    const uint32_t bytes = bytes_[record];
    return {.file = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), record) -
                                        ends_.begin()),
            .offset = offsets_[record],
            .bytes = bytes == kLong ? long_.at(record) : bytes};
  }
  // Its place will be asked for soon: in a random order it is in no cache.
  void prefetch(int64_t record) const {
    __builtin_prefetch(&offsets_[record]);
    __builtin_prefetch(&bytes_[record]);
  }
  int64_t first_of(size_t file) const { return file == 0 ? 0 : ends_[file - 1]; }
  int64_t end_of(size_t file) const { return ends_[file]; }

 private:
  static constexpr uint32_t kLong = UINT32_MAX;  // its length stands in long_
  std::vector<uint64_t> offsets_;
  std::vector<uint32_t> bytes_;
  std::vector<int64_t> ends_;  // of the files: number of the record after each one's last
  std::map<int64_t, uint64_t> long_;
};

}  // namespace headrace
