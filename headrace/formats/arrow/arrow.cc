// SPDX-License-Identifier: Apache-2.0
// Arrow IPC files and streams, also those of Hugging Face's `save_to_disk`; pyarrow reads
// them.
#include <algorithm>

#include "headrace/base/json_reader.h"
#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/arrays/array_errors.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/formats/format.h"
#include "headrace/formats/python/python_formats.h"
#include "headrace/formats/shards/shard_files.h"
#include "headrace/sources/named_files.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

const std::vector<std::string_view> kSuffixes = {".arrow", ".feather"};

bool is_dataset(const std::string& path) { return is_file(joined(path, "state.json")); }
bool is_dataset_dict(const std::string& path) { return is_file(joined(path, "dataset_dict.json")); }

// A file has a signature; a stream begins with -1 and the size of its schema.
bool begins_as_arrow(const std::string& file) {
  return file_begins_with(file, std::string_view("ARROW1\0\0", 8)) ||
         (has_suffix(file, ".arrow") && file_begins_with(file, "\xff\xff\xff\xff"));
}

bool is_arrow(const std::string& path) {
  return (is_folder(path) && (is_dataset(path) || is_dataset_dict(path))) ||
         is_shard_path(path, kSuffixes, begins_as_arrow);
}

std::string text_of_file(const std::string& path) {
  Buffer bytes;
  if (Result<void> read = read_file(path, bytes, {.max_bytes = 16 << 20}); !read) {
    throw Exception(std::move(read.error()));
  }
  return std::string(text_from_bytes(bytes.bytes()));
}

void check_json(const JsonReader& json, const std::string& path) {
  if (json.ok()) return;
  throw Exception(damaged_array(json, path, ""));
}

// state.json: {"_data_files": [{"filename": "data-00000-of-00002.arrow"}, ...],
// ...}
std::vector<std::string> files_of_dataset(const std::string& folder) {
  const std::string path = joined(folder, "state.json"), text = text_of_file(path);
  std::vector<std::string> files;
  JsonReader json(text);
  for (json.begin_object(); json.next_key();) {
    if (json.key() != "_data_files") {
      json.skip();
      continue;
    }
    for (json.begin_array(); json.next_element();) {
      for (json.begin_object(); json.next_key();) {
        if (json.key() != "filename") {
          json.skip();
          continue;
        }
        const std::string name(json.string());
        if (name.empty() || name.find('/') != std::string::npos) json.fail("not a file name");
        if (json.ok()) files.push_back(joined(folder, name));
      }
    }
  }
  json.end();
  check_json(json, path);
  if (files.empty()) throw Exception(damaged_array(path, "it does not list any data files"));
  return files;
}

std::vector<std::string> splits_of(const std::string& folder) {
  const std::string path = joined(folder, "dataset_dict.json"), text = text_of_file(path);
  std::vector<std::string> splits;
  JsonReader json(text);
  for (json.begin_object(); json.next_key();) {
    if (json.key() != "splits") {
      json.skip();
      continue;
    }
    for (json.begin_array(); json.next_element();) splits.emplace_back(json.string());
  }
  json.end();
  check_json(json, path);
  return splits;
}

std::vector<std::string> files_of(const std::string& path, const Arguments& arguments) {
  if (!is_folder(path)) return shard_files(path, kSuffixes);
  if (is_dataset_dict(path)) {
    const std::vector<std::string> splits = splits_of(path);
    const bool known =
        !arguments.is_none("split") &&
        std::find(splits.begin(), splits.end(), arguments.text("split")) != splits.end();
    if (!known) {
      throw Exception(several_parts(path, "it contains the splits " + quoted_list(splits),
                                    "name one: split=\"train\""));
    }
    return files_of_dataset(joined(path, arguments.text("split")));
  }
  if (is_dataset(path)) return files_of_dataset(path);
  return arguments.is_none("split")
             ? shard_files(path, kSuffixes)
             : shard_files_of_split(path, kSuffixes, arguments.text("split"));
}

SourcePtr open_arrow(const std::string& path, const Arguments& arguments, const Progress&) {
  return open_in_python("arrow", files_of(path, arguments), python_arguments(arguments));
}

const FormatRecord kArrow{
    .name = "arrow",
    .doc =
        "Arrow files (.arrow, .feather, including streams), one or many, or the folder that "
        "Hugging Face's save_to_disk writes, read through pyarrow; values are read on demand. "
        "Columns are fields as with Parquet; class names come from the dataset's features.",
    .example = "hr.open(\"dataset/\", split=\"train\")",
    .params = {python_fields_param(),
               outside_param(),
               {.name = "split",
                .type = ParamType::kString,
                .doc = "The split to open, if the dataset has several.",
                .decides = Affects::kFingerprint}},
    .recognizes = is_arrow,
    .open = open_arrow,
    .shards = true};
const Register<FormatRecord> registered_arrow_format(kArrow);

}  // namespace
}  // namespace headrace
