// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/readable_text.h"

#include <algorithm>

namespace headrace {

std::string with_commas(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string out;
  for (size_t at = 0; at < digits.size(); ++at) {
    const bool begins_three = (digits.size() - at) % 3 == 0;
    if (begins_three && at > (number < 0 ? 1u : 0u)) out += ',';
    out += digits[at];
  }
  return out;
}

std::string count_text(int64_t number, const std::string& singular, const std::string& plural) {
  const std::string word = number == 1 ? singular : plural.empty() ? singular + "s" : plural;
  return with_commas(number) + " " + word;
}

std::string quoted_list(const std::vector<std::string>& names, size_t most) {
  std::string out;
  const size_t shown = std::min(names.size(), most);
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) out += i + 1 == names.size() ? " and " : ", ";
    out += "'" + names[i] + "'";
  }
  if (shown < names.size()) out += " and " + std::to_string(names.size() - shown) + " more";
  return out;
}

std::string tuple_text(const std::vector<int64_t>& shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return out + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace headrace
