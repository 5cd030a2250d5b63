// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/number_text.h"

#include <charconv>
#include <cmath>
#include <string>

#include "headrace/base/text.h"

namespace headrace {

std::optional<uint64_t> byte_size_of_text(std::string_view text) {
  text = trimmed(text);
  double number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || !(number >= 0)) return {};
  std::string unit(end, text.data() + text.size());
  while (!unit.empty() && unit.front() == ' ') unit.erase(0, 1);
  for (char& c : unit) c = lower_case(c);
  double of_unit = 1;
  if (!unit.empty() && unit != "b") {
    const size_t power = std::string_view("kmgt").find(unit.front());
    const std::string_view rest = std::string_view(unit).substr(1);
    if (power == std::string_view::npos ||
        !(rest.empty() || rest == "b" || rest == "i" || rest == "ib")) {
      return {};
    }
    of_unit = std::pow(rest.starts_with('i') ? 1024.0 : 1000.0, static_cast<double>(power + 1));
  }
  if (!(number * of_unit < 9e18)) return {};
  return static_cast<uint64_t>(number * of_unit);
}

}  // namespace headrace
