// SPDX-License-Identifier: Apache-2.0
// Everything below a folder of a bucket, listed at once (Bucket::list_below) and accessed folder by
// folder. Memory per name: its text and about 20 bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/sources/name_list.h"
#include "headrace/storage/storage.h"

namespace headrace {

class FolderTree {
 public:
  // Lists everything below `root`. REQUIRES: it is in a bucket. `seen` is called occasionally with
  // the number of files; it may throw. Throws Exception: errors of listing, HR0224 for a file that
  // is listed twice.
  FolderTree(const std::string& root, const std::function<void(int64_t)>& seen);

  PathStatus status() const { return status_; }
  // Like Storage::list() for a folder, given by its path from the root. Does nothing if it is not a
  // folder.
  void list(std::string_view folder, const Storage::EachEntry& each) const;

 private:
  int32_t folder_of(std::string_view path);  // created if it is new, with its parents
  void add(std::string_view path, PathKind kind);
  void sort_by_folder();
  void refuse_duplicate_names(const std::string& root) const;

  PathStatus status_;
  std::unordered_map<std::string, int32_t> folders_;
  std::vector<int32_t> parents_;        // of folders; the root's is -1
  NameList folder_names_, file_names_;  // without their parent folders
  std::vector<int32_t> file_folders_;   // the folder of each file
  // By folder: its files are order_[begins_[folder] .. begins_[folder + 1]), and likewise its
  // subfolders.
  std::vector<int32_t> file_order_, folder_order_;
  std::vector<int64_t> file_begins_, folder_begins_;
};

}  // namespace headrace
