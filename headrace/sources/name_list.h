// SPDX-License-Identifier: Apache-2.0
// Many short strings in one block of memory: their bytes concatenated, and the end offset of each.
// File names take their length plus eight bytes each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

class NameList {
 public:
  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  // Valid until the next add().
  std::string_view operator[](int64_t i) const {
    const uint64_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  void add(std::string_view name) {
    bytes_ += name;
    ends_.push_back(bytes_.size());
  }
  void reserve(int64_t names, size_t bytes) {
    ends_.reserve(names);
    bytes_.reserve(bytes);
  }
  void clear() {
    bytes_.clear();
    ends_.clear();
  }
  const std::string& bytes() const { return bytes_; }
  void shrink() {
    bytes_.shrink_to_fit();
    ends_.shrink_to_fit();
  }

 private:
  std::string bytes_;
  std::vector<uint64_t> ends_;
};

}  // namespace headrace
