// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/splits.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <utility>

#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

const ErrorCode kSplits{
    "HR0405", ErrorKind::kConfig, "several splits in one folder",
    "The folders or files in this folder are named train, val, test or similar, so they are splits "
    "of a dataset; opening them together would train on the validation set. Open one of them: a "
    "folder by its path, files by a pattern. If the folders really are classes, name them in "
    "classes=; files that belong together are opened with one pattern (*.tar)."};

constexpr std::pair<std::string_view, std::string_view> kSplitOf[] = {
    {"train", "train"},  {"training", "train"}, {"trainset", "train"}, {"trainval", "train"},
    {"val", "val"},      {"valid", "val"},      {"validation", "val"}, {"validating", "val"},
    {"valset", "val"},   {"dev", "val"},        {"devset", "val"},     {"test", "test"},
    {"testing", "test"}, {"testset", "test"}};

std::string_view split_of_word(std::string_view word) {
  const auto* const found =
      std::ranges::find(kSplitOf, word, [](auto& each) { return each.first; });
  return found == std::end(kSplitOf) ? std::string_view() : found->second;
}

// Runs of letters, in lower case.
std::vector<std::string> letters_of(std::string_view name) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char c : lower_case(name)) {
    const bool letter = c >= 'a' && c <= 'z';
    if (letter && !inside) words.emplace_back();
    if (letter) words.back() += c;
    inside = letter;
  }
  return words;
}

std::string_view suffix_of_file(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(dot);
}

// A pattern that matches exactly these files of the folder; empty if there is no simple one.
std::string pattern_of(const std::vector<std::string>& chosen,
                       const std::vector<std::string>& all) {
  const std::string name(last_name(chosen.front()));
  const std::string suffix(suffix_of_file(name));
  size_t common = name.size();
  for (const std::string& path : chosen) {
    const std::string_view other = last_name(path);
    common = std::min(common, other.size());
    common = static_cast<size_t>(
        std::mismatch(name.begin(), name.begin() + std::ptrdiff_t(common), other.begin()).first -
        name.begin());
  }
  while (common > 0 && !(name[common - 1] >= 'A')) --common;  // do not end within a number
  for (const std::string& pattern : {name.substr(0, common) + "*" + suffix, name}) {
    const auto fits = [&](const std::string& path) {
      return ::fnmatch(pattern.c_str(), std::string(last_name(path)).c_str(), 0) == 0;
    };
    const auto count = std::ranges::count_if(all, fits);
    if (count == std::ssize(chosen) && std::ranges::all_of(chosen, fits)) return pattern;
  }
  return {};
}

// A name relative to the folder of `path`, which may be data/ of the folder that was given.
std::string beside(const std::string& path, const std::string& name) {
  return path.substr(0, path.rfind('/') + 1) + name;
}

using BySplit = std::map<std::string_view, std::vector<std::string>>;

BySplit by_split(const std::vector<std::string>& files) {
  BySplit out;
  for (const std::string& path : files) {
    if (const auto found = split_word(stem_of(path))) out[found->split].push_back(path);
  }
  return out;
}

}  // namespace

bool is_split_name(std::string_view folder) {
  std::string name = lower_case(folder);
  name.erase(name.find_last_not_of("0123456789-_") + 1);
  return std::ranges::find(kSplitNames, name) != kSplitNames.end();
}

std::optional<SplitWord> split_word(std::string_view name) {
  SplitWord out;
  for (const std::string& word : letters_of(name)) {
    const std::string_view split = split_of_word(word);
    if (split.empty()) {
      out.rest += (out.rest.empty() ? "" : "_") + word;
    } else if (!out.split.empty() && out.split != split) {
      return {};
    } else {
      out.split = split;
    }
  }
  if (out.split.empty()) return {};
  return out;
}

std::vector<std::string> folders_of_splits(const std::vector<std::string>& names) {
  std::map<std::string, std::map<std::string_view, std::vector<std::string>>> by_rest;
  for (const std::string& name : names) {
    if (auto found = split_word(name)) by_rest[found->rest][found->split].push_back(name);
  }
  std::vector<std::string> out;
  for (const auto& [rest, splits] : by_rest) {
    if (splits.size() < 2) continue;
    for (const auto& [split, folders] : splits)
      out.insert(out.end(), folders.begin(), folders.end());
  }
  std::ranges::sort(out);
  return out;
}

void refuse_mixed_splits(const std::string& folder, const std::vector<std::string>& files) {
  const BySplit splits = by_split(files);
  if (splits.size() < 2) return;
  std::vector<std::string> names;
  std::string advice;
  for (const auto& [split, chosen] : splits) {
    names.emplace_back(last_name(chosen.front()));
    const std::string pattern = pattern_of(chosen, files);
    advice += (advice.empty() ? "open \"" : "\", or \"") +
              beside(chosen.front(), pattern.empty() ? names.back() : pattern);
  }
  raise(kSplits,
        "the files in " + folder + " are " + std::to_string(splits.size()) +
            " parts of a dataset: " + quoted_list(names),
        advice + "\"; all of them together: \"" +
            beside(files.front(), "*" + std::string(suffix_of_file(files.front()))) + "\"");
}

std::vector<std::string> files_of_split(const std::string& folder,
                                        const std::vector<std::string>& files,
                                        const std::string& split) {
  const BySplit splits = by_split(files);
  const std::optional<SplitWord> wanted = split_word(split);
  const auto found = wanted ? splits.find(wanted->split) : splits.end();
  if (found != splits.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, chosen] : splits) known.emplace_back(last_name(chosen.front()));
  raise(kSplits, "no file in " + folder + " is named for the split \"" + split + "\"",
        known.empty() ? "omit split=, or open files by a pattern"
                      : "there are " + quoted_list(known));
}

void raise_splits(const std::string& folder, const std::vector<std::string>& splits,
                  bool may_be_classes, const std::string& annotations) {
  std::string advice = "open " + joined(folder, splits[0]);
  for (size_t i = 1; i < splits.size() && i < 4; ++i) advice += ", or " + joined(folder, splits[i]);
  if (!annotations.empty()) advice += "; " + annotations;
  if (may_be_classes) advice += "; if they are classes, name them in classes=";
  raise(kSplits,
        "the folders in " + folder + " are parts of a dataset" +
            (may_be_classes ? ", not classes: " : ": ") + quoted_list(splits),
        advice);
}

}  // namespace headrace
