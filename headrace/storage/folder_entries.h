// SPDX-License-Identifier: Apache-2.0
// The entries of a folder: all of them, or an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "headrace/storage/storage.h"

namespace headrace {

struct FolderEntry {
  std::string name;
  bool is_folder = false;  // follows links
};

// The entries, unsorted, without "." and ".."; at most `most`. Storage errors HR0201..HR0207.
Result<std::vector<FolderEntry>> folder_entries(const std::string& path,
                                                size_t most = std::numeric_limits<size_t>::max());
// The same, but throws.
std::vector<FolderEntry> entries_in(const std::string& path,
                                    size_t most = std::numeric_limits<size_t>::max());

// Size in bytes of a file, or of all files below a folder. Throws Exception: storage errors.
uint64_t bytes_below(const std::string& path);

}  // namespace headrace
