// SPDX-License-Identifier: Apache-2.0
// A folder of images, audio or videos: one folder per class, or all in one. Records and their order
// are the same as in torchvision's ImageFolder: class by class, in each the folders sorted by path,
// in each the names.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/formats/folder/listing_cache.h"
#include "headrace/formats/folder/paired_folders.h"
#include "headrace/formats/folder/splits.h"
#include "headrace/formats/folder/unread_files.h"
#include "headrace/formats/format.h"
#include "headrace/sources/classes.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"
#include "headrace/storage/file_times.h"

namespace headrace {
namespace {

const ErrorCode kNotAFolder{
    "HR0403", ErrorKind::kConfig, "not a folder",
    "The format 'folder' opens a folder of images, but this path is a file. Omit format= to detect "
    "the format from the file's content."};

const ErrorCode kNoPictures{
    "HR0404", ErrorKind::kConfig, "no images",
    "The folder and its subfolders contain no image, audio or video. Images are recognized by "
    "their suffix or their first bytes, audio and video by their suffix; hidden files and folders "
    "are ignored. Check the path: it may be one level too high or too low, or not mounted."};

const ErrorCode kEmptyClasses{
    "HR0407", ErrorKind::kConfig, "class without records",
    "A folder next to the class folders contains no image, audio or video; or it contains no image "
    "while others do: images take precedence in a dataset, then audio, then video, and files of "
    "the other types are ignored. If it counted as a class, it would shift the indices of later "
    "classes. Remove the folder (or the images), name the intended classes in classes=, or pass "
    "allow_empty=True to count it, as torchvision's ImageFolder does."};

const ErrorCode kNoClassFolders{
    "HR0409", ErrorKind::kConfig, "no class folders",
    "classes= lists class folders, but this folder has no subfolders with images. Omit classes= "
    "for images without labels; labels stored elsewhere come from a list file or from "
    "hr.records(image=..., label=...)."};

// Listing a small folder is faster than using a cache file.
constexpr int64_t kFilesWorthKeeping = 4096;

std::string_view class_of(std::string_view folder) { return folder.substr(0, folder.find('/')); }

// Some folders of a listing, in record order.
struct Run {
  int64_t folder = 0;
  int64_t first_record = 0;
  int64_t label = 0;
};

// A note about files that are not records, for a folder with several media types.
std::string left_out_of(const FolderListing& listing) {
  const auto after = std::ranges::find(all_media(), listing.media) - all_media().begin() + 1;
  return count_text(listing.left_out, nouns_of_media("or", "", size_t(after)),
                    nouns_of_media("and", "s", size_t(after))) +
         " skipped, since there are " + std::string(listing.media->noun) + "s";
}

class FolderSource final : public LabeledFiles {
 public:
  FolderSource(std::string root, FolderListing listing, std::vector<Run> runs, ClassList classes)
      : LabeledFiles(classes.size() > 0, listing.media->kind),
        root_(std::move(root)),
        listing_(std::move(listing)),
        runs_(std::move(runs)),
        classes_(std::move(classes)) {
    const Run& last = runs_.back();
    size_ = last.first_record + listing_.folders[last.folder].count;
    Fingerprint print;
    print.add("folder");
    for (const std::string& name : classes_.names()) print.add(name);
    for (const Run& run : runs_) {
      const ListedFolder& folder = listing_.folders[run.folder];
      print.add(listing_.paths[run.folder]);
      print.add(static_cast<uint64_t>(run.label));
      for (int64_t i = 0; i < folder.count; ++i) {
        const std::string_view name = listing_.names[folder.first + i];
        print.add(name);
        if (std::string suffix = unread_suffix(name); !suffix.empty()) ++unread_[suffix];
      }
    }
    fingerprint_ = print.value();
  }

  int64_t size() const override { return size_; }
  std::vector<std::string> classes() const override { return classes_.names(); }
  std::string root() const override { return root_; }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    std::string out = "folder " + root_ + " (" + count_text(size_, "record");
    if (labeled()) out += ", " + count_text(classes_.size(), "class", "classes");
    if (const int64_t beside = listing_.folders[0].count; labeled() && beside > 0) {
      out += "; " + count_text(beside, std::string(listing_.media->noun)) +
             " next to the class folders ignored";
    }
    if (listing_.left_out > 0) out += "; " + left_out_of(listing_);
    return out + ")";
  }
  std::vector<std::string> cautions() const override {
    std::vector<std::string> out = warnings_of_unread(root_, listing_);
    if (listing_.unreadable > 0) {
      out.push_back(count_text(listing_.unreadable, "file") + " in " + root_ +
                    " could not be read and has no image suffix: skipped");
    }
    int64_t unread = 0;
    std::string kinds, packages;
    for (const auto& [suffix, count] : unread_) {
      unread += count;
      if (const std::string package = " " + missing_package(suffix);
          packages.find(package) == packages.npos) {
        packages += package;
      }
      kinds += (kinds.empty() ? "" : ", ") + with_commas(count) + " " + suffix;
    }
    if (unread > 0) {
      out.push_back(
          kinds + " of " + count_text(size_, std::string(listing_.media->noun)) + " in " + root_ +
          ": the library that decodes such files is missing here. apt-get install" + packages +
          ", or convert them to " + std::string(listing_.media->without_library));
    }
    return out;
  }

 private:
  const Run& run_of(int64_t index) const {
    return *std::prev(
        std::upper_bound(runs_.begin(), runs_.end(), index,
                         [](int64_t record, const Run& run) { return record < run.first_record; }));
  }
  void path_of(int64_t index, std::string& out) const override {
    const Run& run = run_of(index);
    out = root_;
    const auto step_into = [&out](std::string_view part) {
      if (part.empty()) return;
      if (out.back() != '/') out += '/';
      out += part;
    };
    step_into(listing_.paths[run.folder]);
    step_into(listing_.names[listing_.folders[run.folder].first + index - run.first_record]);
  }
  int64_t label_of(int64_t index) const override { return run_of(index).label; }

  std::string root_;
  FolderListing listing_;
  std::vector<Run> runs_;  // every entry is non-empty
  ClassList classes_;      // empty: a flat folder
  int64_t size_ = 0;
  uint64_t fingerprint_ = 0;
  std::map<std::string, int64_t> unread_;  // records by suffix whose codec's library is missing
};

// Subfolders of `parent` ("" is the root), by name.
std::vector<std::string> folders_in(const FolderListing& listing, std::string_view parent) {
  std::vector<std::string> out;
  for (int64_t i = 1; i < listing.paths.size(); ++i) {
    std::string_view path = listing.paths[i];
    if (!parent.empty()) {
      if (!path.starts_with(parent) || path.size() <= parent.size() || path[parent.size()] != '/') {
        continue;
      }
      path.remove_prefix(parent.size() + 1);
    }
    if (path.find('/') == std::string_view::npos) out.emplace_back(path);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// A single split name among other names may be a class (CIFAR-100 has "train"); two of them are
// splits, and so is a single folder.
void refuse_splits(const std::string& root, const FolderListing& listing,
                   const std::optional<ClassList>& classes) {
  std::string place;
  std::vector<std::string> folders = folders_in(listing, place);
  int64_t records = listing.folders[0].count;
  // data/imagenet/train, VOCdevkit/VOC2012/JPEGImages: a parent of the dataset was opened.
  while (!classes && folders.size() == 1 && records == 0 && !is_split_name(folders[0])) {
    place = joined(place, folders[0]);
    folders = folders_in(listing, place);
    for (int64_t i = 0; i < listing.paths.size(); ++i) {
      if (listing.paths[i] == place) records = listing.folders[i].count;
    }
  }
  const std::vector<std::string> every = folders;
  const size_t all = folders.size();
  std::erase_if(folders, [&](const std::string& folder) {  // the intended folders
    return classes && place.empty() && classes->number(folder);
  });
  refuse_paired_folders(joined(root, place), folders);
  std::vector<std::string> splits = folders;
  std::erase_if(splits, [](const std::string& folder) { return !is_split_name(folder); });
  if (splits.size() < 2) {
    if (std::vector<std::string> alike = folders_of_splits(folders); !alike.empty()) splits = alike;
  }
  if (splits.empty() || (splits.size() == 1 && all > 1)) return;
  raise_splits(joined(root, place), splits, true,
               advice_for_splits(root, place, listing, every, splits));
}

// The listing from the cache, or a new one that is cached.
FolderListing listing_of(const std::string& root, const Progress& progress,
                         const std::optional<ClassList>& classes) {
  const auto check = [&](const FolderListing& seen) { refuse_splits(root, seen, classes); };
  const CacheDirectory cache = CacheDirectory::of_user();
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(root.c_str(), nullptr),
                                                             &std::free);
  if (resolved) {
    if (std::optional<FolderListing> kept = cached_listing(cache, resolved.get())) {
      check(*kept);
      return std::move(*kept);
    }
  }
  const int64_t began_ns = now_ns();
  FolderListing listing = list_folder(root, progress, check);
  const int64_t entries = listing.names.size() + listing.paths.size() + listing.others;
  // A file that cannot be read now may be readable later without changing its folder's time.
  const bool lasting = listing.unreadable == 0;
  if (resolved && lasting && entries >= kFilesWorthKeeping)
    cache_listing(cache, resolved.get(), listing, began_ns);
  check(listing);
  return listing;
}

[[noreturn]] void no_video_track(const std::string& root, const FolderListing& listing) {
  const int64_t folders = listing.paths.size() - 1;
  const std::string containers = advice_for_containers(root);
  raise(kNoPictures,
        "no image in " + root + " (looked at " + count_text(listing.others, "other file") +
            " and " + count_text(folders, "folder") + ")",
        listing.others + folders == 0
            ? "the folder is empty: check the path, and that it is mounted"
        : containers.empty() ? "check the path: it may be one level too high or too low"
                             : containers);
}

// Numbers the records: classes in name order, and in each the folders in path order.
std::vector<Run> runs_of(const FolderListing& listing, const ClassList& classes) {
  std::vector<Run> runs;
  for (int64_t i = 1; i < listing.paths.size(); ++i) {
    if (listing.folders[i].count == 0) continue;
    runs.push_back({.folder = i, .label = *classes.number(class_of(listing.paths[i]))});
  }
  std::sort(runs.begin(), runs.end(), [&](const Run& a, const Run& b) {
    const std::string_view left = listing.paths[a.folder], right = listing.paths[b.folder];
    const int order = class_of(left).compare(class_of(right));
    return order != 0 ? order < 0 : left < right;
  });
  int64_t next = 0;
  for (Run& run : runs) {
    run.first_record = next;
    next += listing.folders[run.folder].count;
  }
  return runs;
}

// The subfolders of the root that contain pictures at any depth, sorted.
std::vector<std::string> class_folders(const FolderListing& listing) {
  std::vector<std::string> found;
  for (int64_t i = 1; i < listing.paths.size(); ++i) {
    const std::string_view name = class_of(listing.paths[i]);
    if (listing.folders[i].count > 0 && (found.empty() || found.back() != name)) {
      found.emplace_back(name);
    }
  }
  return ClassList::found(std::move(found)).names();
}

ClassList classes_of(const std::string& root, const FolderListing& listing,
                     const std::vector<std::string>& filled, std::optional<ClassList> given,
                     bool allow_empty) {
  if (given) {
    std::vector<std::string> unknown;
    for (const std::string& name : filled) {
      if (!given->number(name)) unknown.push_back(name);
    }
    given->refuse_unknown(unknown, "in " + root);
    return std::move(*given);
  }
  std::vector<std::string> all = folders_in(listing, "");
  if (!allow_empty && all.size() > filled.size()) {
    std::vector<std::string> empty;
    std::set_difference(all.begin(), all.end(), filled.begin(), filled.end(),
                        std::back_inserter(empty));
    const std::string own = std::string(listing.media->noun);
    raise(
        kEmptyClasses,
        "no " + own + " in " + quoted_list(empty) + " of " + root +
            (listing.left_out > 0 ? ", and " + left_out_of(listing) : ""),
        listing.left_out > 0
            ? "take the " + own + "s out of the folder, or name the files: hr.records(video=[...])"
            : "remove it, name the classes in classes=, or pass allow_empty=True");
  }
  return ClassList::found(std::move(all));
}

SourcePtr open_folder(const std::string& path, const Arguments& arguments,
                      const Progress& progress) {
  std::string root = path;
  while (root.size() > 1 && root.ends_with('/')) root.pop_back();
  const Result<PathStatus> there = storage_of(root).look_at(root);
  if (!there) throw Exception(there.error());
  if (there->kind != PathKind::kFolder) {
    raise(kNotAFolder, root + " is a file", "omit format= to detect the format from its content");
  }
  std::optional<ClassList> given = classes_argument(arguments);
  FolderListing listing = listing_of(root, progress, given);
  const std::vector<std::string> filled = class_folders(listing);
  if (filled.empty()) {
    if (listing.folders[0].count == 0) no_video_track(root, listing);
    if (given) {
      raise(kNoClassFolders, "all images are in " + root + " itself, so they have no classes",
            "omit classes=, or open a folder with one subfolder per class");
    }
    return std::make_shared<FolderSource>(root, std::move(listing), std::vector<Run>(1),
                                          ClassList());
  }
  const bool given_classes = given.has_value();
  if (!given && filled.size() == 1) refuse_class_beside_table(root, listing, filled[0]);
  ClassList classes =
      classes_of(root, listing, filled, std::move(given), arguments.flag("allow_empty"));
  if (given_classes) {  // the user has specified the folder's classes
    listing.unread.tables.clear();
    listing.unread.per_record = 0;
  }
  std::vector<Run> runs = runs_of(listing, classes);
  return std::make_shared<FolderSource>(root, std::move(listing), std::move(runs),
                                        std::move(classes));
}

const FormatRecord kFolder{
    .name = "folder",
    .doc =
        "A folder of images; if it has none, of audio clips; if it has neither, of videos. Its "
        "subfolders, sorted by name, are the classes and are searched to any depth; without "
        "subfolders, records have no label. Fields: image, audio or video, label. Records and "
        "order equal torchvision's ImageFolder.",
    .example = "hr.open(\"train/\")",
    .params = {classes_param(),
               {.name = "allow_empty",
                .type = ParamType::kBool,
                .doc = "Whether a folder without images counts as a class.",
                .fallback = false}},
    .recognizes = is_folder,
    .open = open_folder,
    .general = true};
const Register<FormatRecord> registered_folder_format(kFolder);

}  // namespace
}  // namespace headrace
