// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/shards/shard_files.h"

#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>

#include "headrace/base/number_text.h"
#include "headrace/base/text.h"
#include "headrace/formats/folder/splits.h"
#include "headrace/sources/in_order.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"
#include "headrace/storage/folder_entries.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

const ErrorCode kBadPattern{
    "HR0413", ErrorKind::kConfig, "invalid file pattern",
    "A pattern selects several files: braces with a range or a list (train-{0000..0146}.tar, "
    "{a,b}.tar), or shell wildcards (*, ?, [0-9]). A range may have at most a million names, and "
    "every brace must be closed. A pattern without a match is an error, as is a missing file of a "
    "range."};

constexpr size_t kMaxNames = 1'000'000;

[[noreturn]] void bad_pattern(const std::string& pattern, const std::string& why) {
  raise(kBadPattern, why + " in \"" + pattern + "\"",
        "patterns look like train-{0000..0146}.tar or train-*.tar");
}

// "0000..0146" -> 0000, 0001, ...; "a,b" -> a, b.
std::vector<std::string> choices_in(std::string_view inside, const std::string& pattern) {
  std::vector<std::string> out;
  if (const size_t dots = inside.find(".."); dots != std::string_view::npos) {
    const std::string_view from = inside.substr(0, dots), to = inside.substr(dots + 2);
    const auto first = number_from<uint64_t>(from), last = number_from<uint64_t>(to);
    if (!first || !last || *last < *first || *last - *first >= kMaxNames) {
      bad_pattern(pattern, "not a range of numbers: {" + std::string(inside) + "}");
    }
    const size_t width = from.size() > 1 && from[0] == '0' ? from.size() : 0;
    for (uint64_t i = *first; i <= *last; ++i) {
      std::string digits = std::to_string(i);
      if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
      out.push_back(std::move(digits));
    }
    return out;
  }
  for (size_t begin = 0;;) {
    const size_t comma = std::min(inside.find(',', begin), inside.size());
    out.emplace_back(inside.substr(begin, comma - begin));
    if (comma == inside.size()) return out;
    begin = comma + 1;
  }
}

// The length of the pattern's folder part, which is taken literally.
size_t end_of_folder(const std::string& pattern) {
  const size_t slash = pattern.rfind('/');
  const bool folder = slash != std::string::npos && is_folder(pattern.substr(0, slash + 1));
  return folder ? slash + 1 : 0;
}

std::vector<std::string> names_of_braces(const std::string& pattern) {
  const size_t folder = end_of_folder(pattern);
  std::vector<std::string> names = {pattern.substr(0, folder)};
  for (size_t at = folder; at < pattern.size();) {
    const size_t open = std::min(pattern.find('{', at), pattern.size());
    for (std::string& name : names) name += pattern.substr(at, open - at);
    if (open == pattern.size()) break;
    const size_t close = pattern.find('}', open);
    if (close == std::string::npos) bad_pattern(pattern, "a brace that is not closed");
    const std::string_view inside = std::string_view(pattern).substr(open + 1, close - open - 1);
    const std::vector<std::string> choices = choices_in(inside, pattern);
    if (choices.size() > kMaxNames / names.size()) bad_pattern(pattern, "too many names");
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& choice : choices) longer.push_back(name + choice);
    }
    names = std::move(longer);
    at = close + 1;
  }
  return names;
}

// Compares file names with numbers as numbers: "part-9" < "part-10".
bool comes_before(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      if (a[i] != b[j]) return static_cast<uint8_t>(a[i]) < static_cast<uint8_t>(b[j]);
      ++i, ++j;
      continue;
    }
    const auto number = [&](const std::string& text, size_t& at) {
      while (at < text.size() && text[at] == '0') ++at;
      const size_t begin = at;
      while (at < text.size() && digit(text[at])) ++at;
      return std::string_view(text).substr(begin, at - begin);
    };
    const std::string_view left = number(a, i), right = number(b, j);
    if (left.size() != right.size()) return left.size() < right.size();
    if (left != right) return left < right;
  }
  if ((i < a.size()) != (j < b.size())) return j < b.size();
  return a < b;  // "01" and "1"
}

// `folders`: returns folders instead of files.
std::vector<std::string> files_in(const std::string& folder,
                                  const std::function<bool(const std::string&)>& fits,
                                  bool folders = false) {
  std::vector<std::string> out;
  for (const auto& [name, is_folder] : entries_in(folder)) {
    if (name.front() == '.' || !fits(name) || is_folder != folders) continue;
    out.push_back(folder.empty() || folder.ends_with('/') ? folder + name : folder + "/" + name);
  }
  std::sort(out.begin(), out.end(), comes_before);
  return out;
}

// Without a listing, all files are queried together. The results are cached.
void look_at_all(const std::vector<std::string>& names) {
  const auto look = [&](int64_t i) { return int{is_there(names[static_cast<size_t>(i)])}; };
  each_in_order(0, std::ssize(names), kFarFilesAtOnce, look, [](int) {});
}

bool has_wildcard(std::string_view path) {
  return !is_web_path(path) && path.find_first_of("*?[") != std::string_view::npos;
}

std::vector<std::string> files_of_wildcards(const std::string& pattern) {
  const size_t slash = pattern.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : pattern.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? pattern : pattern.substr(slash + 1);
  if (has_wildcard(folder) && !is_folder(folder))
    bad_pattern(pattern, "a wildcard in the name of a folder");
  const auto fits = [&](const std::string& file) {
    return ::fnmatch(name.c_str(), file.c_str(), FNM_PERIOD) == 0;
  };
  const std::vector<std::string> files = files_in(folder, fits);
  return files.empty() ? files_in(folder, fits, true) : files;
}

// The files in the folder, or, if it has none, in its subfolder data/, where Hugging Face
// repositories have them.
std::vector<std::string> files_of_folder(const std::string& path,
                                         const std::vector<std::string_view>& suffixes) {
  const auto fits = [&](const std::string& name) { return has_one_suffix(name, suffixes); };
  std::vector<std::string> found = files_in(path, fits);
  const std::string data = joined(path, "data");
  return found.empty() && is_folder(data) ? files_in(data, fits) : found;
}

void add_files_of(const std::string& path, const std::vector<std::string_view>& suffixes,
                  std::vector<std::string>& out) {
  std::vector<std::string> found;
  if (is_there(path)) {
    if (!suffixes.empty() && is_folder(path)) {
      found = files_of_folder(path, suffixes);
      refuse_mixed_splits(path, found);
    } else {
      found = {path};
    }
  } else if (path.find('{') != std::string::npos) {
    const std::vector<std::string> names = names_of_braces(path);
    if (is_web_path(path)) look_at_all(names);
    for (const std::string& name : names) {
      if (!is_there(name) && has_wildcard(name)) {
        const std::vector<std::string> more = files_of_wildcards(name);
        found.insert(found.end(), more.begin(), more.end());
      } else if (is_there(name)) {
        found.push_back(name);
      } else {
        throw Exception(storage_error(ENOENT, "open", name));
      }
    }
  } else if (has_wildcard(path)) {
    found = files_of_wildcards(path);
  } else {
    throw Exception(storage_error(ENOENT, "open", path));
  }
  if (found.empty()) bad_pattern(path, "no file");
  out.insert(out.end(), found.begin(), found.end());
}

}  // namespace

bool is_shard_pattern(std::string_view path) {
  const char* const signs = is_web_path(path) ? "{\n" : "*?[{\n";
  // A folder listing answers for all files whether they exist; otherwise each one is queried.
  if (!is_web_path(path) && path.find_first_of(signs) != std::string_view::npos && is_async(path)) {
    (void)end_of_folder(std::string(path));
  }
  return path.find_first_of(signs) != std::string_view::npos && !is_there(std::string(path));
}

bool is_shard_folder(const std::string& path, const std::vector<std::string_view>& suffixes) {
  if (!is_folder(path)) return false;
  bool found = false, data = false;
  for (const FolderEntry& entry : entries_in(path)) {
    if (entry.name.front() == '.') continue;
    if (entry.is_folder && entry.name != "data") return false;
    data = data || entry.is_folder;
    found = found || (!entry.is_folder && has_one_suffix(entry.name, suffixes));
  }
  return data ? !found && is_shard_folder(joined(path, "data"), suffixes) : found;
}

std::vector<std::string> shard_files_of_split(const std::string& path,
                                              const std::vector<std::string_view>& suffixes,
                                              const std::string& split) {
  if (!is_folder(path)) return files_of_split(path, shard_files(path, suffixes), split);
  return files_of_split(path, files_of_folder(path, suffixes), split);
}

bool is_shard_path(const std::string& path, const std::vector<std::string_view>& suffixes,
                   bool (*is_shard)(const std::string& file)) {
  return is_folder(path) ? is_shard_folder(path, suffixes) : is_file(path) && is_shard(path);
}

std::vector<std::string> shard_files(const std::string& path,
                                     const std::vector<std::string_view>& suffixes) {
  std::vector<std::string> lines, out;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('\n', begin), path.size());
    if (end > begin) lines.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  if (lines.size() > 1 && is_async(lines.front())) look_at_all(lines);
  for (const std::string& line : lines) add_files_of(line, suffixes, out);
  if (out.empty()) bad_pattern(path, "no file");
  return out;
}

}  // namespace headrace
