// SPDX-License-Identifier: Apache-2.0
// Finds the files that a table refers to, if they are not where it says: in a folder below, with a
// suffix that its ids lack. A few requests to the storage, whatever the table's size.
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
  std::vector<std::string> suffixes;  // what the first name lacks: {""}, {".jpg"}; several: unclear
};

// The first of the folders in which one of the names lies, as it is or with a suffix of the media
// in that folder.
std::optional<RecordFiles> find_record_files(std::span<const std::string> folders,
                                             std::span<const std::string> names);

// A table that names files: a list, a manifest, or one that a program has in memory.
struct FileTable {
  std::string name;         // its path; empty: it is in memory
  std::string folder;       // base of its relative paths; empty: the current one
  bool is_columns = false;  // of hr.records(), which takes no root=
};
using NameAt = std::function<std::string(int64_t)>;
enum class Missing { kRefused, kAllowed };  // files of which none is there

// The suffix that a table's paths lack to be files in its folder; may be empty. Throws Exception
// HR1402 where none of those that are tried (64 at most, on local storage) is a file, with the
// folder that has them where one near the table does; or where a name has several files. None
// instead of that error where `missing` allows it: the names may be no files.
std::optional<std::string> suffix_of_records(const FileTable& table, int64_t count,
                                             const NameAt& name_at,
                                             Missing missing = Missing::kRefused);

// `root=`, of tables whose paths are relative, and the folder that it or the table says, with its
// slash; empty is the current one.
Param root_param();
std::string folder_of_paths(const std::string& table, const Arguments& arguments);

// Whether a heading is that of ids or paths: id, image_id, filename.
bool is_heading_of_files(std::string_view heading);

// The folder, and those below it to a depth of two that do not begin with a dot; at most 64.
std::vector<std::string> folders_below(const std::string& folder);

}  // namespace headrace
