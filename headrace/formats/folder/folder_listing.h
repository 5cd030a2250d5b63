// SPDX-License-Identifier: Apache-2.0
// Lists all images below a folder, or all files of another media kind, without a stat per file.
//
// Images are files with a known suffix, which are not read, and all other files whose first bytes
// are the signature of a codec. Audio and video are recognized by suffix only. Files and folders
// whose names begin with a dot are left out, and so are folders that file servers and archives add
// (@eaDir, __MACOSX). Links to folders are followed, except to one of their parent folders.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/fields/media.h"
#include "headrace/sources/name_list.h"
#include "headrace/sources/source.h"

namespace headrace {

struct ListedFolder {
  uint64_t inode = 0;
  int64_t changed_ns = 0;         // its modification time when it was listed
  int64_t status_changed_ns = 0;  // ctime: archives cannot restore it, unlike changed_ns
  int64_t first = 0;              // its images are names[first .. first + count)
  int64_t count = 0;
};

// Files that may describe the records, but are not read when a folder is opened.
struct UnreadFiles {
  NameList tables;         // paths from the root, files of the root first; at most kMaxTables
  int64_t per_record = 0;  // named after an image in their folder: 1.txt, 1.xml
  std::string first_per_record;
  int64_t masks =
      0;  // images named after another one in their folder: 1_mask.png, or 1.png and 1.jpg
  std::string first_mask;
  static constexpr int64_t kMaxTables = 64;
};

struct FolderListing {
  const MediaRecord* media = all_media().front();
  NameList paths;                     // of the folders, from the root: "", "cat", "cat/small"
  std::vector<ListedFolder> folders;  // one per path; the root first, parents before children
  NameList names;                     // names of the images, folder by folder, sorted by bytes
  int64_t others = 0;                 // visible files that are not images
  int64_t left_out = 0;               // of `others`: other media, by suffix
  int64_t unreadable = 0;             // of `others`: files whose first bytes could not be read
  UnreadFiles unread;                 // among `others`, and masks among the images
};

// Lists files of the first media kind that the folder contains; images if it contains none. A
// bucket is listed once for all kinds. `seen_root` is called when the entries of the root are known
// (its folders are in the listing, but not their contents); it may throw. Throws Exception: HR02xx
// if a folder cannot be listed, HR0408. A file of unknown suffix that cannot be read does not count
// as an image.
FolderListing list_folder(const std::string& root, const Progress& progress,
                          const std::function<void(const FolderListing&)>& seen_root = {});

// The kind of a file by its name; an image if its suffix is unknown.
FieldKind kind_by_suffix(std::string_view name);

// A hash that changes when the suffixes or signatures of images, or the media kind, change.
uint64_t rules_of(const MediaRecord& media);

}  // namespace headrace
