// SPDX-License-Identifier: Apache-2.0
// Where the files lie that a table names, when they are not where it says: in a folder below, with
// a suffix that its ids lack. A few questions to the storage, whatever the table's size.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headrace {

struct RecordFiles {
  std::string folder;
  std::vector<std::string> suffixes;  // what the first name lacks: {""}, {".jpg"}; several: unclear
};

// The first of the folders in which one of the names lies, as it is or with a suffix of the media
// in that folder.
std::optional<RecordFiles> find_record_files(std::span<const std::string> folders,
                                             std::span<const std::string> names);

// The folder, and those below it to a depth of two that do not begin with a dot; at most 64.
std::vector<std::string> folders_below(const std::string& folder);

}  // namespace headrace
