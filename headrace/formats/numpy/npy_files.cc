// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/numpy/npy_files.h"

#include <algorithm>
#include <cstring>

#include "headrace/base/text.h"
#include "headrace/formats/arrays/array_columns.h"
#include "headrace/formats/arrays/array_errors.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/formats/folder/splits.h"
#include "headrace/formats/numpy/npy_array.h"
#include "headrace/sources/columns/array_elements.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"
#include "headrace/storage/folder_entries.h"

namespace headrace {
namespace {

constexpr int64_t kAllHeaders = 10'000;  // up to this many are all read when opening
constexpr int64_t kSomeHeaders = 256;    // sampled from more files
constexpr size_t kFirstNames = 64;       // read to infer a folder's contents

// Names in a folder, sorted by bytes: files with the suffix .npy, or folders.
std::vector<std::string> names_in(const std::string& folder, bool folders) {
  std::vector<std::string> names;
  for (auto& [name, is_folder] : entries_in(folder)) {
    if (name.starts_with('.')) continue;
    if (folders ? is_folder : has_suffix(name, ".npy")) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct FirstNames {
  bool npy = false, picture = false;
  std::vector<std::string> folders;
};
FirstNames first_names(const std::string& path) {
  FirstNames out;
  for (const auto& [name, is_folder] : entries_in(path, kFirstNames)) {
    if (name.starts_with('.')) continue;
    out.npy = out.npy || has_suffix(name, ".npy");
    out.picture = out.picture || has_picture_suffix(name);
    if (is_folder) out.folders.push_back(joined(path, name));
  }
  return out;
}

// A picture or a tensor: the properties common to all files.
struct Common {
  DType dtype = DType::kUInt8;
  Shape shape;  // as stored, -1 where files differ
  bool picture = false, channels_last = false;
};

bool is_last(const Shape& shape, const std::string& channels) {
  FileArray array{.parts = {}, .dtype = DType::kUInt8, .shape = shape};
  make_picture(array, channels);
  return array.channels_last;
}

bool may_be_picture(const NpyHeader& header, const std::string& channels) {
  const FileArray array{.parts = {}, .dtype = header.type.dtype, .shape = header.shape};
  return can_be_picture(array, channels);
}

Shape delivered_shape(Shape shape, const Common& common) {
  if (!common.picture) return shape;
  if (shape.size() == 2) shape.insert(shape.begin(), 1);
  return common.channels_last ? Shape{shape[2], shape[0], shape[1]} : shape;
}

class NpyFilesSource final : public Source {
 public:
  NpyFilesSource(std::string path, NpyFolder folder, Common common)
      : path_(std::move(path)), folder_(std::move(folder)), common_(std::move(common)) {
    schema_.push_back({.name = common_.picture ? "image" : "data",
                       .kind = common_.picture ? FieldKind::kImage : FieldKind::kTensor,
                       .dtype = common_.dtype,
                       .shape = delivered_shape(common_.shape, common_)});
    if (!folder_.labels.empty()) {
      schema_.push_back({.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64});
    }
    const Shape& shape = schema_[0].shape;
    open_ = std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 0; });
    Fingerprint print;
    print.add("npy files");
    print.add(name_of(common_.dtype));
    for (const int64_t size : shape) print.add(static_cast<uint64_t>(size));
    for (const std::string& name : folder_.classes.names()) print.add(name);
    for (int64_t i = 0; i < size(); ++i) {
      print.add(folder_.paths[i].substr(std::min(path_.size(), folder_.paths[i].size())));
    }
    for (const int64_t label : folder_.labels) print.add(static_cast<uint64_t>(label));
    fingerprint_ = print.value();
  }

  int64_t size() const override { return folder_.paths.size(); }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override {
    return is_async(path_) ? ReadStyle::kLater : ReadStyle::kFiles;
  }
  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const override {
    if (wanted[0]) add_piece({.path = key(index)}, out);
  }
  std::string key(int64_t index) const override { return std::string(folder_.paths[index]); }
  std::string root() const override { return path_ + "/"; }
  std::vector<std::string> classes() const override { return folder_.classes.names(); }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::vector<int64_t> integer_column(std::string_view field) const override {
    return field == "label" ? folder_.labels : std::vector<int64_t>();
  }
  std::string description() const override {
    std::string out = "npy " + path_ + ", one record per file (" + count_text(size(), "record");
    if (const int64_t count = folder_.classes.size(); count > 0) {
      out += ", " + count_text(count, "class", "classes");
    }
    return out + ")";
  }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      begin_record(indices[i], schema_.size(), 2, out[i]);
      if (schema_.size() > 1 && wanted[1]) out[i].fields[1].scalar = folder_.labels[indices[i]];
      if (!wanted[0]) continue;
      const std::string path = key(indices[i]);
      read_file_field(path, indices[i], 0, 0, out[i]);
      if (!out[i].result) continue;
      if (Result<void> parsed = parse(path, out[i]); !parsed) {
        parsed.error().where.record = indices[i];
        out[i].fields[0] = {};
        out[i].result = std::move(parsed);
      }
    }
  }

 private:
  Result<void> parse(const std::string& path, RecordData& out) const {
    Buffer& file = out.owned[0];
    const ReadBytes read = [&](uint64_t offset, std::span<uint8_t> into) -> Result<void> {
      std::memcpy(into.data(), file.data() + offset, into.size());
      return {};
    };
    Result<NpyHeader> header = read_npy_header(read, file.size(), path);
    if (!header) return std::move(header.error());
    if (!fits(*header)) {
      return damaged_array(path,
                           "it contains " + std::string(name_of(header->type.dtype)) + " " +
                               tuple_text(header->shape) + ", but the first files " +
                               std::string(name_of(common_.dtype)) + " " +
                               tuple_text(common_.shape),
                           -1,
                           "all files of a folder must have the same type and number of "
                           "dimensions");
    }
    FieldData& data = out.fields[0];
    std::span<uint8_t> bytes(file.data() + header->data_offset, header->data_bytes);
    make_native(bytes, common_.dtype, header->type.big_endian);
    if (open_) data.shape = delivered_shape(header->shape, common_);
    Buffer& other = out.owned[1];
    const bool aligned = header->data_offset % size_of(common_.dtype) == 0;
    if ((header->fortran && header->shape.size() > 1) || !aligned) {
      other.resize(bytes.size());
      if (header->fortran && header->shape.size() > 1) {
        c_order_from_fortran(bytes.data(), header->shape, header->item_bytes, other.data());
      } else {
        std::memcpy(other.data(), bytes.data(), bytes.size());
      }
      bytes = {other.data(), other.size()};
    }
    if (common_.channels_last) {
      Buffer& to = bytes.data() == other.data() ? file : other;
      to.resize(bytes.size());
      move_channels_first(bytes.data(), delivered_shape(header->shape, common_), 1, to.data());
      bytes = {to.data(), to.size()};
    }
    data.bytes = bytes;
    return {};
  }

  bool fits(const NpyHeader& header) const {
    return header.members.empty() && header.type.kind == NpyType::Kind::kNumber &&
           header.type.dtype == common_.dtype && header.shape.size() == common_.shape.size() &&
           std::equal(header.shape.begin(), header.shape.end(), common_.shape.begin(),
                      [](int64_t size, int64_t all) { return all < 0 || size == all; });
  }

  std::string path_;
  NpyFolder folder_;
  Common common_;
  Schema schema_;
  bool open_ = false;  // shapes differ
  uint64_t fingerprint_ = 0;
};

// Merges a file into the properties common to the previous ones.
void add_to_common(const NpyHeader& header, const std::string& path, const std::string& channels,
                   bool first, Common& common) {
  if (!header.members.empty() || header.type.kind != NpyType::Kind::kNumber) {
    throw Exception(unsupported_array(path, "each file must contain one array of numbers",
                                      "save each field as one file with all records"));
  }
  if (first) {
    common = {.dtype = header.type.dtype,
              .shape = header.shape,
              .picture = may_be_picture(header, channels),
              .channels_last = is_last(header.shape, channels)};
  }
  if (header.type.dtype != common.dtype || header.shape.size() != common.shape.size()) {
    throw Exception(damaged_array(
        path,
        "it contains " + std::string(name_of(header.type.dtype)) + " of " +
            std::to_string(header.shape.size()) + " dimensions, but the previous files " +
            std::string(name_of(common.dtype)) + " of " + std::to_string(common.shape.size()),
        -1, "all files of a folder must have the same type and number of dimensions"));
  }
  common.picture = common.picture && may_be_picture(header, channels) &&
                   is_last(header.shape, channels) == common.channels_last;
  for (size_t d = 0; d < common.shape.size(); ++d) {
    if (common.shape[d] != header.shape[d]) common.shape[d] = -1;
  }
}

}  // namespace

NpyFolder list_npy_folder(const std::string& path, const std::optional<ClassList>& classes) {
  NpyFolder out;
  for (const std::string& name : names_in(path, false)) out.paths.add(joined(path, name));
  if (out.paths.size() > 0) return out;
  std::vector<std::string> names;
  std::vector<std::string> folders;
  for (const std::string& folder : names_in(path, true)) {
    const std::vector<std::string> files = names_in(joined(path, folder), false);
    if (files.empty()) continue;
    names.push_back(folder);
    for (const std::string& file : files) {
      out.paths.add(joined(joined(path, folder), file));
      folders.push_back(folder);
    }
  }
  if (const auto splits = folders_of_splits(names); !classes && !splits.empty()) {
    raise_splits(path, splits, true);
  }
  out.classes = classes ? *classes : ClassList::found(names);
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    if (!out.classes.number(name)) unknown.push_back(name);
  }
  out.classes.refuse_unknown(unknown, "in " + path);
  for (const std::string& folder : folders) out.labels.push_back(*out.classes.number(folder));
  return out;
}

bool is_npy_folder(const std::string& path) {
  if (!is_folder(path)) return false;
  const FirstNames names = first_names(path);
  if (names.npy || names.picture || names.folders.empty()) return names.npy && !names.picture;
  const FirstNames inside = first_names(names.folders[0]);
  return inside.npy && !inside.picture;
}

NpyHeader npy_header_of(const std::string& path) {
  Result<File> file = File::open(path);
  if (!file) throw Exception(std::move(file.error()));
  const ReadBytes read = [&](uint64_t offset, std::span<uint8_t> out) {
    return file->read(offset, out);
  };
  Result<NpyHeader> header = read_npy_header(read, file->size(), path);
  if (!header) throw Exception(std::move(header.error()));
  return std::move(*header);
}

SourcePtr npy_files(const std::string& path, NpyFolder folder, const std::string& channels,
                    const Progress& progress) {
  const int64_t files = folder.paths.size();
  const int64_t looked = files <= kAllHeaders ? files : kSomeHeaders;
  Common common;
  for (int64_t i = 0; i < looked; ++i) {
    if (progress && i % 256 == 0) progress(i, looked);
    const std::string file(folder.paths[looked == files ? i : files / looked * i]);
    add_to_common(npy_header_of(file), file, channels, i == 0, common);
  }
  if (common.picture && common.shape.size() == 3 &&
      common.shape[common.channels_last ? 2 : 0] < 0) {
    common.picture = false;  // pictures of a field have the same number of channels
  }
  if (!common.picture) common.channels_last = false;
  return std::make_shared<NpyFilesSource>(path, std::move(folder), std::move(common));
}

}  // namespace headrace
