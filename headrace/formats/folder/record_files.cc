// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/record_files.h"

#include <algorithm>
#include <array>
#include <set>

#include "headrace/base/error.h"
#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"
#include "headrace/storage/folder_entries.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

const ErrorCode kElsewhere{
    "HR1402", ErrorKind::kConfig, "files of a table not found",
    "None of the paths that were tried (the table's first ones and some others) exists in the "
    "table's own folder, or in root=. If they were found in another folder near the table, the "
    "message shows the root= to use. Ids without a suffix are looked up with the suffixes of the "
    "folder's files."};

constexpr size_t kSomeEntries = 256;
constexpr size_t kMaxPairedFolders = 64;
constexpr size_t kFirst = 3;    // names used to find where files are
constexpr int64_t kTried = 64;  // names to try before concluding that none of them is a file
constexpr int kMaxParents = 8;  // parents of a folder or a path that paths may be relative to

// Media suffixes of some of the folder's files.
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

// Whether the folder's tables describe files next to the folder: meta/esc50.csv, audio/.
bool is_folder_of_tables(const std::string& folder) {
  constexpr std::array<std::string_view, 8> kNames = {
      "meta", "metadata", "annotation", "annotations", "labels", "lists", "splits", "csv"};
  return std::ranges::find(kNames, lower_case(last_name(folder))) != kNames.end();
}

std::string place_of(const std::string& folder, const std::string& name) {
  return name.starts_with('/') ? name : joined(folder, name);
}

// The first names and a sample of the others, without empty ones.
std::vector<std::string> some_of(int64_t count, const NameAt& name_at) {
  std::vector<std::string> out;
  const auto step = std::max<int64_t>(1, count / kTried);
  for (int64_t i = 0; i < count; i += i < int64_t{kFirst} ? 1 : step) {
    if (std::string name = name_at(i); !name.empty()) out.push_back(std::move(name));
  }
  return out;
}

std::vector<std::string> first_of(const std::vector<std::string>& names) {
  return {names.begin(), names.begin() + std::ptrdiff_t(std::min(kFirst, names.size()))};
}

// A folder that paths are relative to, and the prefix to remove from them.
struct Root {
  std::string folder;
  std::string too_much;  // "data/old/"
};

std::vector<std::string> folders_around(const FileTable& table) {
  const std::string own = table.name.empty() ? current_folder() : parent_path(table.name);
  std::string folder = table.folder.empty() ? current_folder() : table.folder;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  std::vector<std::string> out = {std::move(folder), own};
  if (is_folder_of_tables(own)) out.push_back(parent_path(own));
  return out;
}

// A folder near the table in which the names are found: unchanged, or without their leading folders
// ("/home/old/train/1.jpg").
std::optional<Root> root_near(const FileTable& table, const std::vector<std::string>& first) {
  const std::vector<std::string> around = folders_around(table);
  std::vector<std::string> folders;
  for (const std::string& folder : around) {
    const std::vector<std::string> below = folders_below(folder);
    folders.insert(folders.end(), below.begin(), below.end());
  }
  if (auto found = find_record_files(folders, first)) return Root{found->folder, {}};
  const std::string& name = first.front();
  for (std::string folder : {current_folder(), around.front(), around[1]}) {
    for (int i = 0; i < kMaxParents && !folder.empty(); ++i, folder = parent_path(folder)) {
      if (is_file(place_of(folder, name))) return Root{folder, {}};
    }
  }
  size_t cut = name.find('/');
  for (int i = 0; i < kMaxParents && cut != std::string::npos; ++i, cut = name.find('/', cut + 1)) {
    const std::string too_much = name.substr(0, cut + 1);
    for (const std::string& folder : folders) {
      const auto lies_there = [&](const std::string& path) {
        return path.starts_with(too_much) && is_file(joined(folder, path.substr(cut + 1)));
      };
      if (std::ranges::all_of(first, lies_there)) return Root{folder, too_much};
    }
  }
  return {};
}

std::string call_with_root(const FileTable& table, const std::string& root) {
  if (table.is_columns) return "hr.records(image=[os.path.join(\"" + root + "\", path), ...])";
  const std::string opened = table.name.empty() ? "..." : "\"" + table.name + "\"";
  return "hr.open(" + opened + ", root=\"" + root + "\")";
}

[[noreturn]] void raise_other_folder(const FileTable& table, const std::vector<std::string>& some) {
  const std::string& name = some.front();
  const std::string folder = folders_around(table).front();
  std::string what = name.starts_with('/') ? "there is no \"" + name + "\""
                                           : "there is no \"" + name + "\" in \"" + folder + "\"";
  if (!table.name.empty()) what += ", as " + table.name + " says";
  if (some.size() > 1) what += ", nor any of " + std::to_string(some.size() - 1) + " others tried";
  const std::optional<Root> near = root_near(table, first_of(some));
  raise(kElsewhere, what,
        !near ? call_with_root(table, "FOLDER") + ", the folder that its paths begin in"
        : near->too_much.empty() ? call_with_root(table, near->folder)
                                 : "remove \"" + near->too_much + "\" from the paths, then " +
                                       call_with_root(table, near->folder));
}

}  // namespace

std::optional<RecordFiles> find_record_files(std::span<const std::string> folders,
                                             std::span<const std::string> names) {
  for (const std::string& folder : folders) {
    const auto lies_there = [&](const std::string& name) {
      return is_file(place_of(folder, name));
    };
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

std::optional<std::string> suffix_of_records(const FileTable& table, int64_t count,
                                             const NameAt& name_at, Missing missing) {
  if (count == 0 || is_async(table.name) || is_async(table.folder)) return "";
  const std::vector<std::string> some = some_of(count, name_at);
  if (some.empty()) return "";
  const std::vector<std::string> here{table.folder};
  const auto found = find_record_files(here, some);
  if (!found && missing == Missing::kAllowed) {
    if (table.name.empty() && table.folder.empty()) return {};
    for (const std::string& folder : folders_around(table)) {
      if (find_record_files(folders_below(folder), first_of(some))) raise_other_folder(table, some);
    }
    return {};
  }
  const auto is_bad = [&](const std::string& name) {  // a folder or pipe is a bad record
    return is_there(place_of(table.folder, name));
  };
  if (!found && std::ranges::any_of(some, is_bad)) return "";
  if (!found) raise_other_folder(table, some);
  if (found->suffixes.size() == 1) return found->suffixes.front();
  raise(kElsewhere,
        "several files in " + table.folder + " have the name \"" + some.front() +
            "\": " + quoted_list(found->suffixes),
        "add the suffix to the paths in the table, or pass root= with a folder that contains only "
        "one of them");
}

Param root_param() {
  return {.name = "root",
          .type = ParamType::kString,
          .doc = "The folder that relative paths refer to. None: the folder of the file.",
          .decides = Affects::kPlace};
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
        if (out.size() == kMaxPairedFolders) return out;
        if (entry.is_folder && !entry.name.starts_with('.'))
          out.push_back(joined(out[next], entry.name));
      }
    }
  }
  return out;
}

}  // namespace headrace
