// SPDX-License-Identifier: Apache-2.0
// Where the files lie that a table names, when they are not where it says: in a folder below, with
// a suffix that its ids lack. A few questions to the storage, whatever the table's size.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/parameters.h"
#include "headrace/sources/name_list.h"

namespace headrace {

struct RecordFiles {
  std::string folder;
  std::vector<std::string> suffixes;  // what the first name lacks: {""}, {".jpg"}; several: unclear
};

// The first of the folders in which one of the names lies, as it is or with a suffix of the media
// in that folder.
std::optional<RecordFiles> find_record_files(std::span<const std::string> folders,
                                             std::span<const std::string> names);

// What the first of a table's paths lack to be files in `folder`: nothing, or a suffix. Throws
// Exception HR1402 where they lie in another folder near the table, which it names, or where a name
// has several files. `names`: as written; only the first few are looked for, on local storage.
std::string suffix_of_records(const std::string& table, const std::string& folder,
                              const NameList& names);

// `root=`, of tables whose paths are relative, and the folder that it or the table says, with its
// slash; empty is the current one.
Param root_param();
std::string folder_of_paths(const std::string& table, const Arguments& arguments);

// Whether a heading is that of ids or paths: id, image_id, filename.
bool is_heading_of_files(std::string_view heading);

// The folder, and those below it to a depth of two that do not begin with a dot; at most 64.
std::vector<std::string> folders_below(const std::string& folder);

}  // namespace headrace
