// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/folder_tree.h"

#include <algorithm>
#include <utility>

#include "headrace/storage/bucket.h"
#include "headrace/storage/remote/object_list.h"

namespace headrace {
namespace {

// Groups the numbers 0, 1, ... by `owner_of`, keeping their order; returns where those of each
// owner begin.
template <class OwnerOf>
void group(int64_t count, int64_t owners, const OwnerOf& owner_of, std::vector<int32_t>& order,
           std::vector<int64_t>& begins) {
  begins.assign(static_cast<size_t>(owners) + 1, 0);
  for (int64_t i = 0; i < count; ++i) {
    if (const int64_t owner = owner_of(i); owner >= 0) ++begins[static_cast<size_t>(owner) + 1];
  }
  for (size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
  order.resize(static_cast<size_t>(begins.back()));
  std::vector<int64_t> next(begins.begin(), begins.end() - 1);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t owner = owner_of(i);
    if (owner >= 0) {
      order[static_cast<size_t>(next[static_cast<size_t>(owner)]++)] = static_cast<int32_t>(i);
    }
  }
}

}  // namespace

FolderTree::FolderTree(const std::string& root, const std::function<void(int64_t)>& seen) {
  folders_.emplace("", 0);
  parents_.push_back(-1);
  folder_names_.add("");
  Result<PathStatus> status =
      bucket_of(root)->list_below(root, [&](std::string_view path, PathKind kind) {
        add(path, kind);
        if (file_names_.size() % 4096 == 0 && seen) seen(file_names_.size());
        return true;
      });
  if (!status) throw Exception(std::move(status.error()));
  status_ = *status;
  file_names_.shrink();
  sort_by_folder();
  refuse_duplicate_names(root);
}

int32_t FolderTree::folder_of(std::string_view path) {
  if (const auto found = folders_.find(std::string(path)); found != folders_.end()) {
    return found->second;
  }
  const size_t slash = path.rfind('/');
  const bool is_below = slash != std::string_view::npos;
  const int32_t parent = is_below ? folder_of(path.substr(0, slash)) : 0;
  const auto number = static_cast<int32_t>(parents_.size());
  folders_.emplace(path, number);
  parents_.push_back(parent);
  folder_names_.add(is_below ? path.substr(slash + 1) : path);
  return number;
}

void FolderTree::add(std::string_view path, PathKind kind) {
  if (kind == PathKind::kFolder) {
    (void)folder_of(path);
    return;
  }
  const size_t slash = path.rfind('/');
  const bool is_below = slash != std::string_view::npos;
  file_folders_.push_back(is_below ? folder_of(path.substr(0, slash)) : 0);
  file_names_.add(is_below ? path.substr(slash + 1) : path);
}

void FolderTree::sort_by_folder() {
  const auto folders = static_cast<int64_t>(parents_.size());
  group(
      file_names_.size(), folders, [&](int64_t i) { return file_folders_[static_cast<size_t>(i)]; },
      file_order_, file_begins_);
  group(
      folders, folders, [&](int64_t i) { return parents_[static_cast<size_t>(i)]; }, folder_order_,
      folder_begins_);
}

void FolderTree::refuse_duplicate_names(const std::string& root) const {
  std::vector<std::string_view> names;
  for (size_t folder = 0; folder < parents_.size(); ++folder) {
    names.clear();
    for (int64_t i = file_begins_[folder]; i < file_begins_[folder + 1]; ++i) {
      names.push_back(file_names_[file_order_[static_cast<size_t>(i)]]);
    }
    std::ranges::sort(names);
    const auto twin = std::ranges::adjacent_find(names);
    if (twin == names.end()) continue;
    Error twice = bad_listing("it contains \"" + std::string(*twin) + "\" twice");
    twice.where.file = root;
    throw Exception(std::move(twice));
  }
}

void FolderTree::list(std::string_view folder, const Storage::EachEntry& each) const {
  const auto found = folders_.find(std::string(folder));
  if (found == folders_.end()) return;
  const auto number = static_cast<size_t>(found->second);
  for (int64_t i = folder_begins_[number]; i < folder_begins_[number + 1]; ++i) {
    if (!each(folder_names_[folder_order_[static_cast<size_t>(i)]], PathKind::kFolder)) return;
  }
  for (int64_t i = file_begins_[number]; i < file_begins_[number + 1]; ++i) {
    if (!each(file_names_[file_order_[static_cast<size_t>(i)]], PathKind::kFile)) return;
  }
}

}  // namespace headrace
