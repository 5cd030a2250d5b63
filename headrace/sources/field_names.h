// SPDX-License-Identifier: Apache-2.0
// Names of a source's fields, each once, where they are made of names in a file.
#pragma once

#include <string>
#include <unordered_map>

namespace headrace {

// Nobody batches as many fields; a file that declares more is refused before they are compared.
inline constexpr size_t kMostFields = 4096;
// Limit for files or data sets in one place with equal row counts, if the user does not say
// that they are fields: a larger number is more likely the parts of one.
inline constexpr size_t kMostLikelyFields = 64;

class FieldNames {
 public:
  bool has(const std::string& name) const { return next_.contains(name); }
  // False: it is taken already.
  bool add(const std::string& name) { return next_.emplace(name, 2).second; }
  // The word, or where it is taken the first of "word_2", "word_3", ... that is not.
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
