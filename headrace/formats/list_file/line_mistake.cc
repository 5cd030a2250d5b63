// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/list_file/line_mistake.h"

#include "headrace/base/number_text.h"
#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"

namespace headrace {
namespace {

constexpr std::string_view kBlanks = " \t";

// "12 cat/1.jpg" -> 12
std::optional<int64_t> leading_number_of(std::string_view path) {
  const size_t blank = path.find_first_of(kBlanks);
  if (blank == std::string_view::npos) return {};
  return number_from<int64_t>(path.substr(0, blank));
}

}  // namespace

std::optional<LineMistake> line_mistake(std::string_view path, std::string_view next) {
  const auto number = leading_number_of(path), second = leading_number_of(next);
  if (has_media_suffix(path) && number && second && *second == *number + 1) {
    return LineMistake{
        "a number before the path \"" + std::string(path.substr(0, 80)) + "\"",
        "hr.open([(path, label), ...]) with the values of this file and of the labels' file"};
  }
  const size_t blank = path.find_first_of(kBlanks);
  if (blank == std::string_view::npos) return {};
  const bool numbers = path.find_first_not_of("0123456789 \t.-", blank) == std::string_view::npos;
  if (!numbers && !has_media_suffix(path.substr(0, blank))) return {};
  if (has_media_suffix(path)) {
    return LineMistake{"two paths in \"" + std::string(path.substr(0, 80)) + "\"",
                       std::string(kPairsAdvice)};
  }
  return LineMistake{"more than one value after \"" + std::string(path.substr(0, blank)) + "\"",
                     "a .csv with a header (path,a,b) makes each column a field"};
}

}  // namespace headrace
