// SPDX-License-Identifier: Apache-2.0
// IDX, the format of MNIST and similar datasets: one big-endian array per file, gzipped or not,
// with labels in a file next to the images.
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/arrays/array_columns.h"
#include "headrace/formats/arrays/array_errors.h"
#include "headrace/formats/arrays/binary_file.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/formats/format.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"
#include "headrace/storage/folder_entries.h"

namespace headrace {
namespace {

constexpr size_t kMaxDimensions = 8;
constexpr size_t kMaxHeader = 4 + 4 * kMaxDimensions;

std::optional<DType> type_of(uint8_t code) {
  switch (code) {
    case 0x08:
      return DType::kUInt8;
    case 0x09:
      return DType::kInt8;
    case 0x0B:
      return DType::kInt16;
    case 0x0C:
      return DType::kInt32;
    case 0x0D:
      return DType::kFloat32;
    case 0x0E:
      return DType::kFloat64;
    default:
      return {};
  }
}

bool begins_as_idx(std::span<const uint8_t> begin) {
  return begin.size() >= 8 && begin[0] == 0 && begin[1] == 0 && type_of(begin[2]) &&
         begin[3] >= 1 && begin[3] <= kMaxDimensions && begin.size() >= 4u + 4u * begin[3];
}

std::string file_name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_idx_file(const std::string& path) {
  // Its first bytes are a weak signature, so the name has to match, too.
  const std::string name = file_name_of(path);
  if (name.find("idx") == std::string::npos && name.find("ubyte") == std::string::npos) {
    return false;
  }
  std::array<uint8_t, kMaxHeader> begin{};
  const size_t count = peek_binary(path, begin);
  return begins_as_idx(std::span<const uint8_t>(begin).first(count));
}

// The image files of a folder, sorted.
std::vector<std::string> picture_files(const std::string& folder) {
  std::vector<std::string> out;
  for (const FolderEntry& entry : entries_in(folder)) {
    if (entry.name.find("images") != std::string::npos && is_idx_file(joined(folder, entry.name))) {
      out.push_back(entry.name);
    }
  }
  std::sort(out.begin(), out.end());
  // MNIST often exists twice, as downloaded and decompressed.
  const auto twice = [&](const std::string& name) {
    return name.ends_with(".gz") &&
           std::find(out.begin(), out.end(), name.substr(0, name.size() - 3)) != out.end();
  };
  std::vector<std::string> once;
  std::copy_if(out.begin(), out.end(), std::back_inserter(once),
               [&](const std::string& name) { return !twice(name); });
  return once;
}

bool is_idx(const std::string& path) {
  return is_folder(path) ? !picture_files(path).empty() : is_idx_file(path);
}

FileArray array_in(const std::string& path) {
  FileArray array;
  FilePart part = open_binary(path);
  std::array<uint8_t, kMaxHeader> begin{};
  const auto count = static_cast<size_t>(std::min<uint64_t>(part.size(), begin.size()));
  if (Result<void> read = part.read(0, std::span(begin).first(count)); !read) {
    throw Exception(std::move(read.error()));
  }
  if (!begins_as_idx(std::span<const uint8_t>(begin).first(count))) {
    throw Exception(damaged_array(path, "it lacks the signature of an IDX file", 0));
  }
  array.dtype = *type_of(begin[2]);
  array.big_endian = true;
  const size_t dimensions = begin[3];
  uint64_t bytes = size_of(array.dtype);
  bool fits = true;
  for (size_t d = 0; d < dimensions; ++d) {
    uint32_t size = 0;
    for (size_t i = 0; i < 4; ++i) size = size << 8 | begin[4 + 4 * d + i];
    fits = fits && !__builtin_mul_overflow(bytes, uint64_t{size}, &bytes);
    if (d == 0) part.count = size;
    if (d > 0) array.shape.push_back(size);
  }
  part.offset = 4 + 4 * dimensions;
  const uint64_t left = part.size() - part.offset;
  if (!fits || bytes != left) {
    throw Exception(damaged_array(path,
                                  "its header declares " + count_text(part.count, "record") +
                                      " of " + tuple_text(array.shape) +
                                      ", which does not match the " + std::to_string(left) +
                                      " bytes after it",
                                  static_cast<int64_t>(part.offset)));
  }
  array.parts.push_back(std::move(part));
  return array;
}

// "train-images-idx3-ubyte.gz" -> "train-labels-idx1-ubyte", plain or gzipped, whichever exists;
// empty: none.
std::string labels_beside(const std::string& path) {
  std::string name = file_name_of(path);
  const std::string folder = path.substr(0, path.size() - name.size());
  const size_t at = name.find("images");
  if (at == std::string::npos) return {};
  name.replace(at, 6, "labels");
  if (const size_t rank = name.find("idx3", at); rank != std::string::npos) name[rank + 3] = '1';
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  for (const std::string& found : {folder + name, folder + name + ".gz"}) {
    if (is_file(found)) return found;
  }
  return {};
}

// The file in a folder to open: the only one, or that of a split.
std::string file_in(const std::string& folder, const Arguments& arguments) {
  std::vector<std::string> names = picture_files(folder);
  const std::vector<std::string> all = names;
  if (!arguments.is_none("split")) {
    const std::string& split = arguments.text("split");
    const std::string other = split == "test" ? "t10k" : split;
    std::erase_if(names, [&](const std::string& name) {
      return name.find(split) == std::string::npos && name.find(other) == std::string::npos;
    });
  }
  if (names.size() == 1) return joined(folder, names[0]);
  throw Exception(several_parts(folder, "it contains the images of " + quoted_list(all),
                                "open one of these files, or name it: split=\"train\""));
}

SourcePtr open_idx(const std::string& path, const Arguments& arguments, const Progress&) {
  const std::string file = is_folder(path) ? file_in(path, arguments) : path;
  const std::string labels =
      arguments.is_none("labels") ? labels_beside(file) : arguments.text("labels");
  std::vector<NamedArray> arrays;
  FileArray array = array_in(file);
  const bool picture = can_be_picture(array, "first");
  const bool label = array.shape.empty() && !is_floating(array.dtype);
  arrays.push_back({{picture ? "image" : label ? "label" : "data", {}}, std::move(array)});
  if (!labels.empty()) arrays.push_back({{"label", {}}, array_in(labels)});
  return records(columns_from_arrays(std::move(arrays), arguments), "idx " + file);
}

const FormatRecord kIdx{
    .name = "idx",
    .doc =
        "IDX files, the format of MNIST, Fashion-MNIST and EMNIST (train-images-idx3-ubyte), "
        "gzipped or not. Labels are read from the file next to it (train-labels-idx1-ubyte). "
        "Fields: image and label. Gzipped files are decompressed into memory when opened.",
    .example = "hr.open(\"MNIST/raw/train-images-idx3-ubyte.gz\")",
    .params =
        {{.name = "labels",
          .type = ParamType::kString,
          .doc = "The file with the labels. None: the one next to it, if it exists.",
          .decides = Affects::kPlace},
         {.name = "split",
          .type = ParamType::kString,
          .doc = "For a folder, the file whose name contains this word: \"train\", \"test\" (also "
                 "t10k)."},
         channels_param()},
    .recognizes = is_idx,
    .open = open_idx};
const Register<FormatRecord> registered_idx_format(kIdx);

}  // namespace
}  // namespace headrace
