// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/folder_listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/codecs/codec.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/storage/file.h"
#include "headrace/storage/file_times.h"

namespace headrace {
namespace {

const ErrorCode kTooManyFolders{
    "HR0408", ErrorKind::kResource, "too many folders",
    "More than four million folders were found, or one folder on more than 256 paths. A few links "
    "to folders can multiply without end when each contains several links to the next. Remove "
    "them, or give the files in a list."};

constexpr int64_t kMaxFolders = int64_t{1} << 22;
constexpr int kMostPaths = 256;  // that links make to one folder
constexpr size_t kLongestSuffix = 8;

// torchvision's IMG_EXTENSIONS, so that a folder's records are the same here and there, and what
// the codecs of this build add.
const std::vector<std::string_view>& picture_suffixes() {
  static const std::vector<std::string_view> suffixes = [] {
    std::vector<std::string_view> all = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp",
                                         ".pgm", ".tif",  ".tiff", ".webp"};
    for (const CodecRecord* codec : Registry<CodecRecord>::all()) {
      all.insert(all.end(), codec->suffixes.begin(), codec->suffixes.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }();
  return suffixes;
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using OpenFolder = std::unique_ptr<DIR, CloseFolder>;

[[noreturn]] void cannot_list(int error_number, const std::string& path) {
  throw Exception(storage_error(error_number, "list", path));
}

OpenFolder open_folder(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) cannot_list(errno, path);
  OpenFolder folder(::fdopendir(descriptor));
  if (!folder) {
    const int error_number = errno;
    ::close(descriptor);
    cannot_list(error_number, path);
  }
  return folder;
}

class Lister {
 public:
  Lister(const std::string& root, const Progress& progress) : root_(root), progress_(progress) {}

  FolderListing list(const std::function<void(const FolderListing&)>& seen_root) {
    struct stat status{};
    if (::stat(root_.c_str(), &status) != 0) cannot_list(errno, root_);
    add_folder("", -1, status);
    for (int64_t folder = 0; folder < listing_.paths.size(); ++folder) {
      list_one(folder);
      if (folder == 0 && seen_root) seen_root(listing_);
    }
    listing_.names.shrink();
    return std::move(listing_);
  }

 private:
  enum class Entry { kFolder, kFile, kNeither };
  struct Origin {  // of a folder
    int64_t parent;
    dev_t device;
    ino_t inode;
  };

  void add_folder(std::string_view path, int64_t parent, const struct stat& status) {
    if (listing_.paths.size() == kMaxFolders) {
      raise(kTooManyFolders, "more than " + std::to_string(kMaxFolders) + " folders in " + root_,
            "look for links that contain each other");
    }
    if (++times_listed_[{status.st_dev, status.st_ino}] > kMostPaths) {
      raise(kTooManyFolders,
            joined(root_, path) + " is a folder that more than " + std::to_string(kMostPaths) +
                " paths lead to",
            "look for links to folders that multiply");
    }
    listing_.paths.add(path);
    listing_.folders.push_back({.inode = status.st_ino});
    origins_.push_back({parent, status.st_dev, status.st_ino});
  }

  bool lies_in(int64_t folder, const struct stat& status) const {
    for (; folder >= 0; folder = origins_[folder].parent) {
      if (origins_[folder].inode == status.st_ino && origins_[folder].device == status.st_dev) {
        return true;
      }
    }
    return false;
  }

  void list_one(int64_t number) {
    relative_ = listing_.paths[number];
    path_ = joined(root_, relative_);
    const OpenFolder folder = open_folder(path_);
    struct stat status{};
    if (::fstat(::dirfd(folder.get()), &status) != 0) cannot_list(errno, path_);
    ListedFolder& listed = listing_.folders[number];
    // The time before the entries are read: a change while they are read shows later.
    listed.changed_ns = changed_ns(status);
    listed.first = listing_.names.size();
    files_.clear();
    folders_.clear();
    read_entries(folder.get());
    sorted(files_, [&](std::string_view name) { listing_.names.add(name); });
    listing_.folders[number].count = files_.size();
    sorted(folders_, [&](std::string_view name) { visit(::dirfd(folder.get()), name, number); });
  }

  void read_entries(DIR* folder) {
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(folder);
      if (!entry) {
        if (errno != 0) cannot_list(errno, path_);
        return;
      }
      const std::string_view name = entry->d_name;
      if (name.starts_with('.')) continue;
      if (++seen_ % 4096 == 0 && progress_) progress_(seen_, -1);
      switch (kind_of(folder, *entry)) {
        case Entry::kFolder:
          folders_.add(name);
          break;
        case Entry::kFile:
          if (has_picture_suffix(name) || is_picture_inside(name)) {
            files_.add(name);
          } else {
            ++listing_.others;
          }
          break;
        case Entry::kNeither:
          ++listing_.others;
      }
    }
  }

  // From the entry alone where the file system says; links and silent file systems need a stat.
  static Entry kind_of(DIR* folder, const dirent& entry) {
    switch (entry.d_type) {
      case DT_DIR:
        return Entry::kFolder;
      case DT_REG:
        return Entry::kFile;
      case DT_LNK:
      case DT_UNKNOWN:
        break;
      default:
        return Entry::kNeither;
    }
    struct stat status{};
    // A link to nowhere counts as a file: if its name is a picture's, reading the record says so.
    if (::fstatat(::dirfd(folder), entry.d_name, &status, 0) != 0) return Entry::kFile;
    if (S_ISDIR(status.st_mode)) return Entry::kFolder;
    return S_ISREG(status.st_mode) ? Entry::kFile : Entry::kNeither;
  }

  bool is_picture_inside(std::string_view name) {
    std::array<uint8_t, 16> first{};
    const std::string path = joined(path_, name);
    Result<size_t> count = read_prefix(path, first);
    if (count) return codec_of({first.data(), *count}) != nullptr;
    if (count.error().code->id != "HR0201") ++listing_.unreadable;  // else gone, a link to nowhere
    return false;
  }

  void visit(int parent_descriptor, std::string_view name, int64_t parent) {
    struct stat status{};
    const std::string text(name);
    if (::fstatat(parent_descriptor, text.c_str(), &status, 0) != 0) {
      cannot_list(errno, joined(path_, name));
    }
    if (!lies_in(parent, status)) add_folder(joined(relative_, name), parent, status);
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
  std::vector<Origin> origins_;  // by folder
  std::map<std::pair<dev_t, ino_t>, int> times_listed_;
  int64_t seen_ = 0;
  // Of the folder at hand:
  std::string relative_, path_;
  NameList files_, folders_;
  std::vector<uint32_t> order_;
};

std::string suffix_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || name.size() - dot > kLongestSuffix) return {};
  return lower_case(name.substr(dot));
}

}  // namespace

FolderListing list_folder(const std::string& root, const Progress& progress,
                          const std::function<void(const FolderListing&)>& seen_root) {
  return Lister(root, progress).list(seen_root);
}

bool has_picture_suffix(std::string_view name) {
  const auto& suffixes = picture_suffixes();
  return std::binary_search(suffixes.begin(), suffixes.end(), std::string_view(suffix_of(name)));
}

std::string unread_suffix(std::string_view name) {
  std::string suffix = suffix_of(name);
  for (const CodecRecord* codec : Registry<CodecRecord>::all()) {
    const auto& read = codec->suffixes;
    if (std::find(read.begin(), read.end(), std::string_view(suffix)) != read.end()) return {};
  }
  return has_picture_suffix(suffix) ? suffix : std::string();
}

uint64_t picture_rules() {
  Fingerprint rules;
  for (std::string_view suffix : picture_suffixes()) rules.add(suffix);
  for (const CodecRecord* codec : Registry<CodecRecord>::all()) rules.add(codec->name);
  return rules.value();
}

}  // namespace headrace
