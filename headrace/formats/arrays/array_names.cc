// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/arrays/array_names.h"

#include <cctype>

#include "headrace/base/utf8.h"

namespace headrace {

// Names of arrays are written by programs: their case counts ("X", "y"), and they are not those
// that people give to the columns of a table (kLabelHeadings).
std::string_view meaning_of(std::string_view name) {
  struct Known {
    std::string_view name, meaning;
  };
  static constexpr Known kKnown[] = {
      {"image", "image"}, {"images", "image"}, {"x", "image"},       {"X", "image"},
      {"mask", "mask"},   {"masks", "mask"},   {"label", "label"},   {"labels", "label"},
      {"y", "label"},     {"target", "label"}, {"targets", "label"},
  };
  for (const Known& known : kKnown) {
    if (known.name == name) return known.meaning;
  }
  return {};
}

std::string field_name_of(std::string_view text) {
  const bool utf8 = is_utf8({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  std::string out;
  for (const unsigned char c : text) {
    const bool letter = c >= 128 ? utf8 : c == '_' || std::isalnum(c);
    out += letter ? static_cast<char>(c) : '_';
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out.insert(0, "_");
  if (out == "id" || out == "key" || out == "valid") out += '_';
  return out;
}

}  // namespace headrace
