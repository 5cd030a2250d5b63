// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/folder_entries.h"

#include <utility>

namespace headrace {

Result<std::vector<FolderEntry>> folder_entries(const std::string& path, size_t most) {
  std::vector<FolderEntry> out;
  if (most == 0) return out;
  Result<PathStatus> listed =
      storage_of(path).list(path, [&](std::string_view name, PathKind kind) {
        out.push_back({std::string(name), kind == PathKind::kFolder});
        return out.size() < most;
      });
  if (!listed) return std::move(listed.error());
  return out;
}

std::vector<FolderEntry> entries_in(const std::string& path, size_t most) {
  Result<std::vector<FolderEntry>> entries = folder_entries(path, most);
  if (!entries) throw Exception(std::move(entries.error()));
  return std::move(*entries);
}

}  // namespace headrace
