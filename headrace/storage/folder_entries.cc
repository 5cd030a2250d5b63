// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/folder_entries.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "headrace/storage/file.h"

namespace headrace {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

Error cannot_list(int error_number, const std::string& path) {
  Error error = storage_error(error_number, "list", path);
  error.note.clear();  // which tells how often a read was tried
  return error;
}

// From the entry alone where the file system says; links and silent file systems need a stat. What
// cannot be looked at (a link to nowhere) is no folder, and an error to whoever reads it.
bool is_folder_entry(DIR* folder, const dirent& entry) {
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat status{};
  return ::fstatat(::dirfd(folder), entry.d_name, &status, 0) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

Result<std::vector<FolderEntry>> folder_entries(const std::string& path, size_t most) {
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(path.empty() ? "." : path.c_str()));
  if (!folder) return cannot_list(errno, path);
  std::vector<FolderEntry> out;
  while (out.size() < most) {
    errno = 0;  // which alone tells the end from an error
    const dirent* entry = ::readdir(folder.get());
    if (!entry) {
      if (errno != 0) return cannot_list(errno, path);
      break;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    out.push_back({std::string(name), is_folder_entry(folder.get(), *entry)});
  }
  return out;
}

std::vector<FolderEntry> entries_in(const std::string& path, size_t most) {
  Result<std::vector<FolderEntry>> entries = folder_entries(path, most);
  if (!entries) throw Exception(std::move(entries.error()));
  return std::move(*entries);
}

}  // namespace headrace
