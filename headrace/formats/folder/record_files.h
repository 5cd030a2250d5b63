// SPDX-License-Identifier: Apache-2.0
// Finds files that are not at the path given in a table, but in a subfolder, or whose suffix the
// table omits. Makes a few storage requests, regardless of the table's size.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/parameters.h"

namespace headrace {

struct RecordFiles {
  std::string folder;
  std::vector<std::string>
      suffixes;  // to append to the first name: {""}, {".jpg"}; several: ambiguous
};

// The first of the folders that contains one of the names, unchanged or with a suffix of the media
// files in that folder.
std::optional<RecordFiles> find_record_files(std::span<const std::string> folders,
                                             std::span<const std::string> names);

// A table that lists files: a list, a manifest, or one in memory.
struct FileTable {
  std::string name;         // path of the table; empty: in memory
  std::string folder;       // base of its relative paths; empty: the current one
  bool is_columns = false;  // for hr.records(), which has no root=
};
using NameAt = std::function<std::string(int64_t)>;
enum class Missing { kRefused, kAllowed };  // if none of the files exists

// The suffix that must be appended to a table's paths to find files in its folder; may be empty.
// Throws Exception HR1402 if none of the paths tried (64 at most, on local storage) is a file, with
// the folder near the table that contains them, if such a folder exists; or if a name matches
// several files. With Missing::kAllowed, returns empty instead of the first error: the names may
// not be files.
std::optional<std::string> suffix_of_records(const FileTable& table, int64_t count,
                                             const NameAt& name_at,
                                             Missing missing = Missing::kRefused);

// `root=`, for tables with relative paths, and the resulting folder, with a final slash; empty: the
// current one.
Param root_param();
std::string folder_of_paths(const std::string& table, const Arguments& arguments);

// Whether a column heading means ids or paths: id, image_id, filename.
bool is_heading_of_files(std::string_view heading);

// The folder, and its subfolders to a depth of two, without those that begin with a dot; at most
// 64.
std::vector<std::string> folders_below(const std::string& folder);

}  // namespace headrace
