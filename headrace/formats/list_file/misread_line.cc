// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/list_file/misread_line.h"

#include "headrace/base/number_text.h"
#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"

namespace headrace {
namespace {

constexpr std::string_view kBlanks = " \t";

// "12 cat/1.jpg" -> 12
std::optional<int64_t> number_before(std::string_view path) {
  const size_t blank = path.find_first_of(kBlanks);
  if (blank == std::string_view::npos) return {};
  return number_from<int64_t>(path.substr(0, blank));
}

}  // namespace

std::optional<MisreadLine> misread_line(std::string_view path, std::string_view next) {
  const auto number = number_before(path), second = number_before(next);
  if (has_media_suffix(path) && number && second && *second == *number + 1) {
    return MisreadLine{
        "a number before the path \"" + std::string(path.substr(0, 80)) + "\"",
        "hr.open([(path, label), ...]) with the values of this file and of the labels' file"};
  }
  const size_t blank = path.find_first_of(kBlanks);
  if (blank == std::string_view::npos) return {};
  const bool numbers = path.find_first_not_of("0123456789 \t.-", blank) == std::string_view::npos;
  if (!numbers && !has_media_suffix(path.substr(0, blank))) return {};
  if (has_media_suffix(path)) {
    return MisreadLine{"two paths in \"" + std::string(path.substr(0, 80)) + "\"",
                       std::string(kPairsAdvice)};
  }
  return MisreadLine{"more than one value after \"" + std::string(path.substr(0, blank)) + "\"",
                     "a .csv with a header (path,a,b) makes each column a field"};
}

}  // namespace headrace
