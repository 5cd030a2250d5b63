// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy: a single file, several as one source, or a folder of them.
#include <algorithm>
#include <set>

#include "headrace/base/registry.h"
#include "headrace/formats/arrays/array_columns.h"
#include "headrace/formats/arrays/array_errors.h"
#include "headrace/formats/folder/splits.h"
#include "headrace/formats/format.h"
#include "headrace/formats/numpy/npy_array.h"
#include "headrace/formats/numpy/npy_files.h"
#include "headrace/formats/shards/shard_files.h"
#include "headrace/sources/field_names.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

bool is_npy(const std::string& path) {
  if (is_folder(path)) return is_npy_folder(path);
  return file_begins_with(path, kNpyMagic);
}

std::string stem_of(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

std::vector<NpyValues> values_of(const std::string& path) {
  Result<File> file = File::open(path);
  if (!file) throw Exception(std::move(file.error()));
  const auto shared = std::make_shared<const File>(std::move(*file));
  return read_npy_array({.part = {.file = shared}, .size = shared->size(), .path = path});
}

// Appends the records of `more`.
void append(std::vector<NpyValues>& all, std::vector<NpyValues> more, const std::string& path) {
  bool same = all.size() == more.size();
  for (size_t i = 0; same && i < all.size(); ++i) {
    same = all[i].member == more[i].member && all[i].values.index() == more[i].values.index();
    if (!same) break;
    if (auto* texts = std::get_if<1>(&all[i].values)) {
      const auto& others = std::get<1>(more[i].values);
      texts->insert(texts->end(), others.begin(), others.end());
      continue;
    }
    auto& array = std::get<FileArray>(all[i].values);
    auto& other = std::get<FileArray>(more[i].values);
    same = array.dtype == other.dtype && array.shape == other.shape &&
           array.stride == other.stride && array.big_endian == other.big_endian;
    if (same) array.parts.push_back(std::move(other.parts[0]));
  }
  if (same) return;
  throw Exception(damaged_array(path, "its type or shape differs from that of earlier files", -1,
                                "files opened as one dataset may differ in the first axis only"));
}

std::vector<NamedArray> named(std::vector<NpyValues> values, const std::string& name) {
  std::vector<NamedArray> out;
  for (NpyValues& each : values) {
    NamedArray& array = out.emplace_back();
    array.choice.name = each.member.empty() ? name : each.member;
    if (auto* texts = std::get_if<1>(&each.values)) {
      array.values = TextColumn{std::move(*texts)};
    } else {
      array.values = std::get<FileArray>(std::move(each.values));
    }
  }
  return out;
}

// The arrays listed in `fields=`, in that order.
std::vector<NamedArray> chosen(std::vector<NamedArray> arrays, const Arguments& arguments) {
  std::vector<std::string> names;
  for (const NamedArray& array : arrays) names.push_back(array.choice.name);
  std::vector<NamedArray> out;
  for (const ArrayChoice& choice : choose_arrays(names, arguments)) {
    const auto at = std::find(names.begin(), names.end(), choice.name) - names.begin();
    out.push_back({choice, arrays[static_cast<size_t>(at)].values});
  }
  return out;
}

// A single array is named by `field`, by its file's name if that has a meaning, or by its contents.
void name_single_array(NamedArray& array, const Arguments& arguments) {
  if (!arguments.is_none("field")) {
    array.choice.field = arguments.text("field");
  } else if (!has_meaning(array, arguments)) {
    const auto* numbers = std::get_if<FileArray>(&array.values);
    const bool picture = numbers && can_be_picture(*numbers, arguments.text("channels"));
    array.choice.name = picture ? "image" : numbers ? "data" : "text";
  }
}

SourcePtr open_files(const std::string& path, const Arguments& arguments) {
  const std::vector<std::string> files = shard_files(path, {".npy"});
  std::vector<NpyValues> values = values_of(files[0]);
  for (size_t i = 1; i < files.size(); ++i) append(values, values_of(files[i]), files[i]);
  const bool lone = values.size() == 1 && values[0].member.empty();
  std::vector<NamedArray> arrays = named(std::move(values), stem_of(files[0]));
  if (lone) {
    name_single_array(arrays[0], arguments);
  } else {
    arrays = chosen(std::move(arrays), arguments);
  }
  return records(columns_from_arrays(std::move(arrays), arguments), "npy " + path);
}

// Whether each file is a field: all with the same number of records, but not all of the same kind.
bool are_fields(const NameList& paths) {
  if (paths.size() < 2 || paths.size() > int64_t{kMaxLikelyFields}) return false;
  std::set<int64_t> lengths;
  std::set<std::pair<DType, size_t>> kinds;
  for (int64_t i = 0; i < paths.size(); ++i) {
    const NpyHeader header = npy_header_of(std::string(paths[i]));
    if (header.shape.empty()) return false;
    lengths.insert(header.shape[0]);
    kinds.insert({header.type.dtype, header.shape.size()});
  }
  return lengths.size() == 1 && kinds.size() > 1;
}

SourcePtr open_folder(const std::string& path, const Arguments& arguments,
                      const Progress& progress) {
  NpyFolder folder = list_npy_folder(path, classes_argument(arguments));
  if (folder.paths.size() == 0) {
    throw Exception(unsupported_array(path, "there is no .npy file in this folder",
                                      "put them directly in it, or in one folder per class"));
  }
  const std::string& each = arguments.text("each_file");
  const bool labeled = !folder.labels.empty();
  if (!labeled && each == "auto" && arguments.is_none("fields")) {
    std::vector<std::string> files;
    for (int64_t i = 0; i < folder.paths.size(); ++i) files.emplace_back(folder.paths[i]);
    refuse_mixed_splits(path, files);
  }
  const bool fields = each == "field" || !arguments.is_none("fields") ||
                      (each == "auto" && !labeled && are_fields(folder.paths));
  if (!fields) return npy_files(path, std::move(folder), arguments.text("channels"), progress);
  std::vector<NamedArray> arrays;
  for (int64_t i = 0; i < folder.paths.size(); ++i) {
    const std::string file(folder.paths[i]);
    for (NamedArray& array : named(values_of(file), stem_of(file))) {
      arrays.push_back(std::move(array));
    }
  }
  return records(columns_from_arrays(chosen(std::move(arrays), arguments), arguments),
                 "npy " + path);
}

SourcePtr open_npy(const std::string& path, const Arguments& arguments, const Progress& progress) {
  if (!is_folder(path)) return open_files(path, arguments);
  return open_folder(path.substr(0, std::max<size_t>(path.find_last_not_of('/') + 1, 1)), arguments,
                     progress);
}

const FormatRecord kNpy{
    .name = "npy",
    .doc =
        "NumPy arrays (.npy) whose first axis indexes the records: one file, several as one "
        "(x-*.npy), or a folder. In a folder, each file is a field if all have the same number of "
        "records (images.npy, labels.npy); otherwise each file is a record, with a label if it is "
        "in a class folder. Any byte order, C or Fortran order; read by position, never "
        "memory-mapped. Python objects are rejected.",
    .example = "hr.open(\"images.npy\")",
    .params = {{.name = "field",
                .type = ParamType::kString,
                .doc = "Field name for a single array. None: \"image\" if the array has the shape "
                       "and dtype of images, otherwise \"data\"."},
               array_fields_param(),
               channels_param(),
               {.name = "each_file",
                .type = ParamType::kString,
                .doc = "Contents of each file in a folder: \"field\" (all "
                       "records of a field), \"record\", or \"auto\".",
                .fallback = std::string("auto"),
                .choices = {"auto", "field", "record"}},
               classes_param()},
    .recognizes = is_npy,
    .open = open_npy,
    .shards = true};
const Register<FormatRecord> registered_npy_format(kNpy);

}  // namespace
}  // namespace headrace
