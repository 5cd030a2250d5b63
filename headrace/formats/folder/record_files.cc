// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/record_files.h"

#include <algorithm>
#include <set>

#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/storage/file.h"
#include "headrace/storage/folder_entries.h"

namespace headrace {
namespace {

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
