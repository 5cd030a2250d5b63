// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/folder_listing.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "headrace/base/random.h"
#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_tree.h"
#include "headrace/formats/folder/unread_files.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/storage/bucket.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

const ErrorCode kTooManyFolders{
    "HR0408", ErrorKind::kResource, "too many folders",
    "More than four million folders were found, or one folder is reached by more than 256 paths. A "
    "few symbolic links can multiply exponentially if each target contains several links to the "
    "next. Remove such links, or pass the files as a list."};

constexpr int64_t kMaxFolders = int64_t{1} << 22;
constexpr int kMaxPaths = 256;  // of links to one folder

// Folders added by file servers and archivers, which contain previews or copies.
bool is_of_system(std::string_view name) {
  constexpr std::array<std::string_view, 7> kNames = {
      "@eaDir",    "@tmp", "#recycle", "__MACOSX", "$RECYCLE.BIN", "System Volume Information",
      "lost+found"};
  return std::ranges::find(kNames, name) != kNames.end();
}

class Lister {
 public:
  Lister(const std::string& root, const Progress& progress, const MediaRecord& media,
         std::optional<FolderTree>& tree)
      : root_(root), progress_(progress), tree_(tree) {
    listing_.media = &media;
  }

  FolderListing list(const std::function<void(const FolderListing&)>& seen_root) {
    add_folder("", -1, status_of(root_));
    for (int64_t folder = 0; folder < listing_.paths.size(); ++folder) {
      list_one(folder);
      if (folder > 0) continue;
      if (seen_root) seen_root(listing_);
      if (!tree_ && bucket_of(root_)) {
        tree_.emplace(root_, [&](int64_t files) {
          if (progress_) progress_(seen_ + files, -1);
        });
      }
    }
    listing_.names.shrink();
    return std::move(listing_);
  }

 private:
  struct Origin {  // path of a folder
    int64_t parent;
    uint64_t device, inode;
  };

  static FileIdentity status_of(const std::string& path) {
    Result<FileIdentity> identity = identity_of(path);
    if (!identity) throw Exception(std::move(identity.error()));
    return *identity;
  }

  void add_folder(std::string_view path, int64_t parent, const FileIdentity& folder) {
    if (listing_.paths.size() == kMaxFolders) {
      raise(kTooManyFolders, "more than " + std::to_string(kMaxFolders) + " folders in " + root_,
            "look for links that contain each other");
    }
    if (++times_listed_[{folder.device, folder.inode}] > kMaxPaths) {
      raise(kTooManyFolders,
            joined(root_, path) + " can be reached by more than " + std::to_string(kMaxPaths) +
                " paths",
            "look for links to folders that multiply");
    }
    listing_.paths.add(path);
    listing_.folders.push_back({.inode = folder.inode});
    origins_.push_back({parent, folder.device, folder.inode});
  }

  bool lies_in(int64_t folder, const FileIdentity& inner) const {
    for (; folder >= 0; folder = origins_[folder].parent) {
      if (origins_[folder].inode == inner.inode && origins_[folder].device == inner.device) {
        return true;
      }
    }
    return false;
  }

  void list_one(int64_t number) {
    relative_ = listing_.paths[number];
    path_ = joined(root_, relative_);
    files_.clear();
    folders_.clear();
    annotations_.clear();
    const auto take_each = [&](std::string_view name, PathKind kind) {
      take(name, kind);
      return true;
    };
    Result<PathStatus> status =
        tree_ ? Result(tree_->status()) : storage_of(path_).list(path_, take_each);
    if (!status) throw Exception(std::move(status.error()));
    if (tree_) tree_->list(relative_, take_each);
    ListedFolder& listed = listing_.folders[number];
    listed.changed_ns = status->identity.modified_ns;
    listed.status_changed_ns = status->status_changed_ns;
    listed.first = listing_.names.size();
    sorted(files_, [&](std::string_view name) { listing_.names.add(name); });
    const auto pictures = [&](int64_t i) { return listing_.names[listed.first + i]; };
    if (listing_.media->kind == FieldKind::kImage)
      count_masks(relative_, files_.size(), pictures, listing_.unread);
    sorted(annotations_, [&](std::string_view name) {
      add_unread(relative_, name, files_.size(), pictures, listing_.unread);
    });
    listing_.folders[number].count = files_.size();
    sorted(folders_, [&](std::string_view name) { visit(name, number); });
  }

  void take(std::string_view name, PathKind kind) {
    if (name.starts_with('.') || (kind == PathKind::kFolder && is_of_system(name))) return;
    if (++seen_ % 4096 == 0 && progress_) progress_(seen_, -1);
    // A dangling link counts as a file: if it has a picture's name, reading the record reports it.
    const bool file = kind == PathKind::kFile || kind == PathKind::kNothing;
    if (kind == PathKind::kFolder) {
      folders_.add(name);
    } else if (file && is_wanted(name)) {
      files_.add(name);
    } else {
      ++listing_.others;
      if (file && has_media_suffix(name)) ++listing_.left_out;
      if (file && may_be_annotations(name)) annotations_.add(name);
    }
  }

  bool is_wanted(std::string_view name) {
    const auto media = media_by_suffix(name);
    if (media.empty()) return listing_.media->by_content && is_one_inside(name);
    return std::ranges::find(media, listing_.media) != media.end();
  }

  bool is_one_inside(std::string_view name) {
    std::array<uint8_t, kMediaSignature> first{};
    const std::string path = joined(path_, name);
    Result<size_t> count = read_prefix(path, first);
    if (count) return !listing_.media->format_of({first.data(), *count}).empty();
    // otherwise removed, or a dangling link
    if (count.error().code->id != "HR0201") ++listing_.unreadable;
    return false;
  }

  void visit(std::string_view name, int64_t parent) {
    const std::string path = joined(relative_, name);
    if (bucket_of(root_)) {  // these storages have no links
      return add_folder(path, parent, {.inode = hash_name(path)});
    }
    const FileIdentity folder = status_of(joined(root_, path));
    if (!lies_in(parent, folder)) add_folder(path, parent, folder);
  }

  template <class Use>
  void sorted(const NameList& names, const Use& use) {
    order_.resize(names.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(),
              [&](uint32_t a, uint32_t b) { return names[a] < names[b]; });
    for (uint32_t i : order_) use(names[i]);
  }

  const std::string root_;
  const Progress& progress_;
  FolderListing listing_;
  std::optional<FolderTree>& tree_;  // for a storage that lists everything below the root at once
  std::vector<Origin> origins_;      // by folder
  std::map<std::pair<uint64_t, uint64_t>, int> times_listed_;
  int64_t seen_ = 0;
  // The current folder:
  std::string relative_, path_;
  NameList files_, folders_, annotations_;
  std::vector<uint32_t> order_;
};

}  // namespace

FolderListing list_folder(const std::string& root, const Progress& progress,
                          const std::function<void(const FolderListing&)>& seen_root) {
  std::optional<FolderTree> tree;
  const auto list = [&](const MediaRecord& media) {
    return Lister(root, progress, media, tree).list(seen_root);
  };
  FolderListing listing = list(*all_media().front());
  for (const MediaRecord* media : all_media()) {
    if (listing.names.size() > 0 || listing.others == 0) break;
    if (media == listing.media) continue;
    FolderListing found = list(*media);
    if (found.names.size() > 0) listing = std::move(found);
  }
  return listing;
}

FieldKind kind_by_suffix(std::string_view name) {
  const auto media = media_by_suffix(name);
  return media.empty() ? FieldKind::kImage : media.front()->kind;
}

uint64_t rules_of(const MediaRecord& media) {
  const MediaRecord& first = *all_media().front();
  Fingerprint rules;
  if (&media != &first) {
    rules.add(std::string(media.noun) + "s");
    for (std::string_view suffix : suffixes_of(media)) rules.add(suffix);
  }
  for (std::string_view suffix : suffixes_of(first)) rules.add(suffix);
  for (const MediaFormat& format : first.formats()) rules.add(format.name);
  return rules.value();
}

}  // namespace headrace
