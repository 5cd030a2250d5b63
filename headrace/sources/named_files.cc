// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/named_files.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "headrace/base/parameters.h"
#include "headrace/fields/media.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

const ErrorCode kLeadsOutside{
    "HR0276", ErrorKind::kConfig, "dataset refers to files outside its folder",
    "File names inside a dataset (COCO's file_name, the paths of Arrow and Parquet) must be "
    "relative to its folder. An absolute path, one with '..', or a URL (scheme://...) could "
    "expose any file of this machine or its network, and convert or pack would copy it. If you "
    "trust the dataset, or wrote it yourself, pass allow_outside=True."};

const ErrorCode kNoPicture{
    "HR0278", ErrorKind::kData, "file outside the dataset is not an image",
    "A list or table names this file as an image, audio or video, or a link in the dataset's "
    "folder leads to it. It is outside that folder, and its first bytes are not those of such a "
    "file, so it is not read: the list or the link is wrong, or this is an attempt to read a "
    "private file of this machine.",
    /*of_record=*/true};

// The path with all links resolved; empty if it does not exist.
std::string followed(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         std::free);
  return real ? real.get() : std::string();
}

bool is_below(const std::string& path, std::string folder) {
  if (!folder.ends_with('/')) folder += '/';
  return path.starts_with(folder);
}

bool is_linked_outside(const std::string& path, const std::string& root) {
  if (root.empty() || !scheme_of(root).empty()) return false;
  const std::string file = followed(path), folder = followed(root);
  return !file.empty() && !folder.empty() && !is_below(file, folder);
}

bool begins_like_media(const FieldData& field) {
  if (field.track) return true;  // its first bytes need not be read again
  std::array<uint8_t, kMediaSignature> first;
  std::span<const uint8_t> bytes = field.bytes;
  if (field.file && field.file->read(0, first)) bytes = first;
  return media_that_begins(bytes) != nullptr;
}

}  // namespace

bool stays_inside(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find('\0') != std::string_view::npos) {
    return false;
  }
  if (!scheme_of(name).empty()) return false;  // on another storage, without a base folder
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    if (name.substr(begin, end - begin) == "..") return false;
    begin = end + 1;
  }
  return true;
}

Param outside_param() {
  return {.name = "allow_outside",
          .type = ParamType::kBool,
          .doc =
              "Also read files whose names are absolute or "
              "contain '..': for trusted datasets only.",
          .fallback = false,
          .decides = Affects::kReading};
}

void refuse_outside(const NameList& names, const std::string& file) {
  int64_t count = 0, first = 0;
  for (int64_t i = names.size(); i-- > 0;) {
    if (names[i].empty() || stays_inside(names[i])) continue;
    ++count;
    first = i;
  }
  if (count == 0) return;
  raise(kLeadsOutside,
        (file.empty() ? std::string() : file + ": ") + count_text(count, "name") + " of " +
            with_commas(names.size()) + " do not stay in its folder, \"" +
            std::string(names[first]) + "\" first",
        "allow_outside=True reads them, if you trust the dataset");
}

bool lies_outside(const std::string& path, const std::string& root) {
  if (root.empty()) return false;
  std::string_view rest = path;
  if (root == ".") {
    if (stays_inside(rest)) return false;
  } else if (rest.starts_with(root)) {
    rest.remove_prefix(root.size());
    const bool whole = root.ends_with('/') || rest.starts_with('/');
    while (rest.starts_with('/')) rest.remove_prefix(1);
    if (whole && stays_inside(rest)) return false;
  }
  return !is_below(absolute_path(path), absolute_path(root));
}

int64_t files_outside(const Source& source) {
  const std::string root = source.root();
  if (root.empty()) return 0;
  int64_t count = 0;
  for (int64_t i = 0; i < source.size(); ++i) count += lies_outside(source.key(i), root);
  return count;
}

void read_named_picture(const std::string& path, const std::string& root, int64_t record,
                        size_t field, size_t buffer, RecordData& out, bool shared) {
  read_file_field(path, record, field, buffer, out, shared);
  if (!out.result || begins_like_media(out.fields[field])) return;
  const bool is_empty = out.fields[field].bytes.empty() && !out.fields[field].file;
  const bool linked =
      !is_empty && is_linked_outside(path, root);  // only checked for files that are not media
  if (!linked && !lies_outside(path, root)) return;
  out.fields[field] = {};
  out.result = Error{.code = &kNoPicture,
                     .what = "its first bytes are not those of an " + nouns_of_media("or"),
                     .where = Where{.file = path, .record = record},
                     .note = linked ? "a link leads out of the dataset's folder" : "",
                     .hint = linked ? "remove the link, or copy the file into the folder"
                                    : "correct the list, or copy the file into its folder"};
}

}  // namespace headrace
