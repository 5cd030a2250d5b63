// SPDX-License-Identifier: Apache-2.0
// Chooses the format that opens a path.
#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/formats/folder/paired_folders.h"
#include "headrace/formats/format.h"
#include "headrace/formats/opening/opened_source.h"
#include "headrace/formats/shards/shard_files.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/sources/field_kinds.h"
#include "headrace/sources/source.h"
#include "headrace/storage/file.h"
#include "headrace/storage/folder_entries.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

const ErrorCode kNotRecognized{
    "HR0401", ErrorKind::kConfig, "format not recognized",
    "No format recognizes this path. `headrace formats` lists the available formats. Use format= "
    "when files have unusual names; pass images from several places as lists: "
    "hr.records(image=[...], label=[...])."};

const ErrorCode kNothingThere{
    "HR0402", ErrorKind::kStorage, "file or folder not found",
    "The path to open does not exist. Check its spelling, what it is relative to, and that the "
    "disk is mounted."};

// The first look at a path. For a remote file, the storage also fetches the bytes that its format
// reads next.
Result<PathStatus> looked_at(const std::string& path) {
  const bool at_end =
      std::ranges::any_of(Registry<FormatRecord>::all(), [&](const FormatRecord* format) {
        return !format->index_at_end.empty() &&
               has_suffix(without_query(path), format->index_at_end);
      });
  const Storage& storage = storage_of(path);
  return at_end ? storage.look_at_ends(path) : storage.look_at(path);
}

// The last part of the path that exists, and a neighbor whose name is near.
[[noreturn]] void raise_no_path(const std::string& path) {
  const std::string scheme(scheme_of(path));
  if (!scheme.empty() && !Registry<StorageRecord>::find(scheme)) {
    raise(kNothingThere,
          "\"" + path + "\" is a URL, and " + scheme + ":// is not a supported storage",
          "download it, mount it as a folder, or load the plug-in that reads it (hr.load_plugin)");
  }
  if (path.starts_with('~')) {
    raise(kNothingThere, "nothing found at \"" + path + "\"",
          "~ is expanded only by shells: give the full path, or use os.path.expanduser");
  }
  if (is_web_path(path)) {
    raise(kNothingThere, "nothing found at \"" + path + "\"",
          "check the address; web servers do not provide listings, so a folder cannot be opened");
  }
  std::string missing = normal_path(path);
  while (missing.size() > 1 && missing.ends_with('/')) missing.pop_back();
  std::string parent = parent_path(missing);
  while (!parent.empty() && parent != parent_path(parent) && !is_there(parent)) {
    missing = parent;
    parent = parent_path(parent);
  }
  const std::string root = scheme.empty() ? current_folder() : scheme + "://";
  const std::string& folder = parent.empty() ? root : parent;
  std::vector<std::string> neighbors;
  if (auto entries = folder_entries(folder, 1000)) {  // otherwise without a hint
    for (FolderEntry& entry : *entries) neighbors.push_back(std::move(entry.name));
  }
  const std::vector<std::string_view> names(neighbors.begin(), neighbors.end());
  const std::string name(last_name(missing));
  const std::string_view near = nearest_name(name, names);
  std::string what = "nothing found at \"" + path + "\"";
  if (is_relative_path(path)) what += " (from " + current_folder() + ")";
  raise(kNothingThere, what,
        near.empty() ? "there is no " + name + " in " + folder
                     : "did you mean \"" + joined(parent, near) + "\"?");
}

const FormatRecord& named_format(const std::string& name) {
  std::vector<std::string_view> names;
  std::string all;
  for (const FormatRecord* format : Registry<FormatRecord>::all()) {
    if (format->name == name) return *format;
    names.push_back(format->name);
    all += (all.empty() ? "" : ", ") + std::string(format->name);
  }
  const std::string_view near = nearest_name(name, names);
  raise(kNotRecognized, "there is no format \"" + name + "\"",
        near.empty() ? "the formats are " + all : "did you mean \"" + std::string(near) + "\"?");
}

const ErrorCode kOneFile{
    "HR0418", ErrorKind::kConfig, "format takes a single file",
    "This format opens one file or one folder, but the path is a pattern or a list. Open them one "
    "by one and combine them with hr.concat(...)."};

const FormatRecord& format_of(const std::string& path) {
  std::vector<const FormatRecord*> formats = Registry<FormatRecord>::all();
  std::ranges::stable_sort(formats, {}, [](const FormatRecord* format) {
    return format->general ? 2 : format->plugged ? 1 : 0;
  });
  for (const FormatRecord* format : formats) {
    if (format->recognizes(path)) return *format;
  }
  const auto found = media_by_suffix(path);
  const MediaRecord* const media = found.empty() ? nullptr : found.front();
  raise(
      kNotRecognized, "no format recognizes \"" + path + "\"",
      media ? "it is one " + std::string(media->noun) + ": open its folder, or hr.records(" +
                  std::string(media->name) + "=[\"" + path + "\"])"
      : has_suffix(path, ".yaml") || has_suffix(path, ".yml")
          ? "of YOLO: " + yolo_advice(joined(parent_path(path), "images"),
                                      joined(parent_path(path), "labels"))
      : has_suffix(path, ".xml")
          ? voc_advice(joined(parent_path(parent_path(path)), "JPEGImages"), parent_path(path))
      : has_suffix(path, ".txt") || has_suffix(path, ".lst")
          ? "a list has a path in each line; of ids: hr.records(image=[f\"FOLDER/{id}.jpg\" for id "
            "in open(\"" +
                path + "\").read().split()])"
          : "`headrace formats` lists the formats; select one with format=");
}

}  // namespace

SourcePtr open_source(const std::string& given, const std::map<std::string, ParamValue>& arguments,
                      const Progress& progress) {
  simd_level();  // throws here, and not on a worker thread, if HEADRACE_SIMD is invalid
  if (given.empty() || given.find('\0') != std::string::npos) raise_no_path(given);
  const bool several = is_shard_pattern(given);
  const std::string path = absolute_form(given);
  const std::string first = several ? shard_files(path).front() : path;
  if (const Result<PathStatus> there = looked_at(first); !there) {
    if (there.error().code->id == "HR0201") raise_no_path(given);
    throw Exception(there.error());
  }
  std::map<std::string, ParamValue> rest = arguments;
  const FormatRecord* format = nullptr;
  if (const auto chosen = rest.find("format"); chosen != rest.end()) {
    if (const auto* name = std::get_if<std::string>(&chosen->second)) format = &named_format(*name);
    rest.erase(chosen);
  }
  std::vector<std::string> kinds;
  if (const auto found = rest.find("kinds"); found != rest.end()) {
    if (const auto* list = std::get_if<std::vector<std::string>>(&found->second)) kinds = *list;
    rest.erase(found);
  }
  const Kinds said = kinds_from(kinds);
  if (!format) format = &format_of(first);
  if (several && !format->shards) {
    raise(kOneFile,
          "the format \"" + std::string(format->name) + "\" does not support several files",
          "hr.concat(hr.open(...), hr.open(...))");
  }
  const Arguments checked(format->name, format->params,
                          with_absolute_paths(*format, std::move(rest)));
  SourcePtr source = format->open(path, checked, progress);
  source = with_evident_kinds(std::move(source), said, !format->knows_kinds);
  return opened_source(std::move(source), *format, path, checked, kinds);
}

}  // namespace headrace
