// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/record_files.h"

#include <algorithm>
#include <array>
#include <set>

#include "headrace/base/error.h"
#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/sources/wording.h"
#include "headrace/storage/file.h"
#include "headrace/storage/folder_entries.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

const ErrorCode kElsewhere{
    "HR1402", ErrorKind::kConfig, "files of a table lie elsewhere",
    "None of the first files that the table names is where the table says: in its own folder, or in "
    "root=. They were found in another folder near the table, which root= should name; ids without a "
    "suffix are looked for with those of the folder's files."};

constexpr size_t kSomeEntries = 256;
constexpr size_t kMostFolders = 64;

// Of the media among some of the folder's files.
std::set<std::string> suffixes_in(const std::string& folder) {
  std::set<std::string> out;
  const auto entries = folder_entries(folder.empty() ? "." : folder, kSomeEntries);
  if (!entries) return out;
  for (const FolderEntry& entry : *entries) {
    if (!entry.is_folder && has_media_suffix(entry.name))
      out.insert(entry.name.substr(entry.name.rfind('.')));
  }
  return out;
}

// Whether the files of its tables lie beside the folder: meta/esc50.csv, audio/.
bool is_folder_of_tables(const std::string& folder) {
  constexpr std::array<std::string_view, 8> kNames = {
      "meta", "metadata", "annotation", "annotations", "labels", "lists", "splits", "csv"};
  return std::ranges::find(kNames, lower_case(last_name(folder))) != kNames.end();
}

}  // namespace

std::optional<RecordFiles> find_record_files(std::span<const std::string> folders,
                                             std::span<const std::string> names) {
  for (const std::string& folder : folders) {
    const auto lies_there = [&](const std::string& name) { return is_file(joined(folder, name)); };
    if (std::ranges::any_of(names, lies_there)) return RecordFiles{folder, {""}};
    const std::set<std::string> some = suffixes_in(folder);
    for (const std::string& name : names) {
      RecordFiles found{folder, {}};
      for (const std::string& suffix : some) {
        if (lies_there(name + suffix)) found.suffixes.push_back(suffix);
      }
      if (!found.suffixes.empty()) return found;
    }
  }
  return {};
}

std::string suffix_of_records(const std::string& table, const std::string& folder,
                              const NameList& names) {
  constexpr int64_t kLooked = 3;
  std::vector<std::string> first;
  for (int64_t i = 0; i < std::min(kLooked, names.size()); ++i) {
    if (names[i].empty() || names[i].starts_with('/')) return {};
    first.emplace_back(names[i]);
  }
  if (first.empty() || answers_later(table) || answers_later(folder)) return {};
  const std::vector<std::string> here{folder};
  if (const auto found = find_record_files(here, first)) {
    if (found->suffixes.size() == 1) return found->suffixes.front();
    raise(kElsewhere,
          "several files in " + folder + " have the name \"" + first.front() +
              "\": " + quoted_list(found->suffixes),
          "write the suffix in the table, or root= of a folder with one of them");
  }
  const std::string own = parent_path(table);
  std::vector<std::string> places{folder, own};
  if (is_folder_of_tables(own)) places.push_back(parent_path(own));
  for (const std::string& near : places) {
    const auto found = find_record_files(folders_below(near), first);
    if (!found) continue;
    raise(kElsewhere, "no \"" + first.front() + "\" in " + folder + ", as " + table + " says",
          "hr.open(\"" + table + "\", root=\"" + found->folder + "\")");
  }
  return {};
}

Param root_param() {
  return {.name = "root",
          .type = ParamType::kString,
          .doc = "The folder that paths are relative to. None: the file's own.",
          .decides = Decides::kPlace};
}

std::string folder_of_paths(const std::string& table, const Arguments& arguments) {
  if (arguments.is_none("root")) {
    const size_t slash = table.rfind('/');
    return slash == std::string::npos ? "" : table.substr(0, slash + 1);
  }
  std::string root = arguments.text("root");
  if (!root.empty() && !root.ends_with('/')) root += '/';
  return root;
}

bool is_heading_of_files(std::string_view heading) {
  constexpr std::array<std::string_view, 12> kWords = {"id",   "image", "img",      "file",
                                                       "path", "name",  "filename", "filepath",
                                                       "uid",  "uuid",  "audio",    "video"};
  const std::string lower = lower_case(heading);
  return std::ranges::find(kWords, lower) != kWords.end() || lower.ends_with("_id") ||
         lower.starts_with("id_") || lower.starts_with("image_") || lower.starts_with("img_") ||
         lower.starts_with("file_");
}

std::vector<std::string> folders_below(const std::string& folder) {
  std::vector<std::string> out{folder};
  size_t next = 0;
  for (int depth = 0; depth < 2; ++depth) {
    for (const size_t end = out.size(); next < end; ++next) {
      auto entries = folder_entries(out[next].empty() ? "." : out[next], kSomeEntries);
      if (!entries) continue;
      std::ranges::sort(*entries, {}, &FolderEntry::name);
      for (const FolderEntry& entry : *entries) {
        if (out.size() == kMostFolders) return out;
        if (entry.is_folder && !entry.name.starts_with('.'))
          out.push_back(joined(out[next], entry.name));
      }
    }
  }
  return out;
}

}  // namespace headrace
