// SPDX-License-Identifier: Apache-2.0
// Class names and their numbers (labels). The names are either found in the data and sorted by
// their bytes (the order of Python's sorted() on UTF-8 names), or given by the user and kept in
// that order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headrace/base/parameters.h"

namespace headrace {

class ClassList {
 public:
  ClassList() = default;
  // From names found in the data, in any order and with duplicates.
  static ClassList found(std::vector<std::string> names);
  // Throws Exception HR0406 if the list is empty or has duplicates.
  static ClassList given(std::vector<std::string> names);

  const std::vector<std::string>& names() const { return names_; }
  int64_t size() const { return static_cast<int64_t>(names_.size()); }
  std::optional<int64_t> number(std::string_view name) const;
  // Throws Exception HR0406, which lists the unknown classes, if there are any. `where`: "in
  // train/".
  void refuse_unknown(const std::vector<std::string>& unknown, const std::string& where) const;

 private:
  explicit ClassList(std::vector<std::string> names);
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  std::vector<std::string> names_;
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> numbers_;
};

// The `classes=` parameter of formats with labels, and its value.
Param classes_param();
std::optional<ClassList> classes_argument(const Arguments& arguments);

}  // namespace headrace
