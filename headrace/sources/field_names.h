// SPDX-License-Identifier: Apache-2.0
// Unique names for a source's fields, derived from names in a file.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <unordered_map>

namespace headrace {

// No real dataset has this many fields; a file that declares more is rejected before names are
// compared.
inline constexpr size_t kMaxFields = 4096;
// Limit for taking files (or HDF5 datasets) with equal row counts in one place as fields, if they
// are not declared as fields: more of them are probably the parts of one array.
inline constexpr size_t kMaxLikelyFields = 64;

// Names of values that every record has already.
inline bool is_reserved_field(std::string_view name) {
  return name == "id" || name == "key" || name == "valid";
}
inline bool is_word_byte(unsigned char c) { return c == '_' || std::isalnum(c) || c >= 128; }
// Letters, digits and _, not beginning with a digit; all non-ASCII characters count as letters.
inline bool is_field_word(std::string_view name) {
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::ranges::all_of(name, is_word_byte);
}
// A field word, or several joined by dots: "state", "observation.images.0".
inline bool is_field_name(std::string_view name) {
  const auto fits = [](unsigned char c) { return c == '.' || is_word_byte(c); };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name.front())) &&
         std::ranges::all_of(name, fits) && name.front() != '.' && name.back() != '.' &&
         name.find("..") == name.npos;
}

class FieldNames {
 public:
  bool has(const std::string& name) const { return next_.contains(name); }
  // False: already in use.
  bool add(const std::string& name) { return next_.emplace(name, 2).second; }
  // Returns and reserves the word, or if it is in use, the first free one of "word_2", "word_3",
  // ...
  std::string take(const std::string& word) {
    if (add(word)) return word;
    for (int& next = next_[word];;) {
      std::string name = word + "_" + std::to_string(next++);
      if (!has(name)) return next_.emplace(name, 2), name;
    }
  }

 private:
  std::unordered_map<std::string, int> next_;  // name -> the number to try next
};

}  // namespace headrace
