// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/folder_entries.h"

#include <utility>

#include "headrace/base/text.h"

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

uint64_t bytes_below(const std::string& path) {
  uint64_t bytes = 0;
  std::vector<std::string> left{path};
  while (!left.empty()) {
    const std::string next = std::move(left.back());
    left.pop_back();
    Result<PathStatus> status = storage_of(next).look_at(next);
    if (!status) throw Exception(std::move(status.error()));
    if (status->kind == PathKind::kFile) bytes += status->identity.size;
    if (status->kind != PathKind::kFolder) continue;
    for (const FolderEntry& entry : entries_in(next)) left.push_back(joined(next, entry.name));
  }
  return bytes;
}

}  // namespace headrace
