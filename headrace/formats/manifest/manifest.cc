// SPDX-License-Identifier: Apache-2.0
// A manifest: a table of images and their metadata, as CSV with a header or JSON lines.
#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/formats/folder/record_files.h"
#include "headrace/formats/format.h"
#include "headrace/formats/manifest/manifest_columns.h"
#include "headrace/formats/manifest/manifest_table.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/named_files.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

using Form = ManifestField::Form;

class ManifestSource final : public Source {
 public:
  ManifestSource(std::string file, std::string folder, std::vector<ManifestField> fields,
                 int64_t size)
      : file_(std::move(file)),
        folder_(std::move(folder)),
        fields_(std::move(fields)),
        size_(size) {
    Fingerprint print;
    print.add("manifest");
    print.add(static_cast<uint64_t>(size_));
    for (const ManifestField& field : fields_) {
      schema_.push_back(field.field);
      has_files_ |= field.form == Form::kFile;
      add_field(field, print);
    }
    fingerprint_ = print.value();
  }

  int64_t size() const override { return size_; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override {
    if (!has_files_) return ReadStyle::kMemory;
    return is_async(folder_) ? ReadStyle::kLater : ReadStyle::kFiles;
  }
  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const override {
    for (size_t f = 0; f < fields_.size(); ++f) {
      if (wanted[f] && fields_[f].form == Form::kFile) {
        add_piece({.path = path_of(fields_[f], index)}, out);
      }
    }
  }
  std::string separate_file(int64_t index, size_t field) const override {
    return fields_[field].form == Form::kFile ? path_of(fields_[field], index) : "";
  }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string root() const override { return !has_files_ ? "" : folder_.empty() ? "." : folder_; }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t record = indices[i];
      begin_record(record, fields_.size(), fields_.size(), out[i]);
      for (size_t f = 0; f < fields_.size() && out[i].result; ++f) {
        if (wanted[f]) read_field(f, record, out[i]);
      }
    }
  }

  std::string key(int64_t index) const override {
    for (const ManifestField& field : fields_) {
      if (field.form == Form::kFile) return path_of(field, index);
    }
    return std::to_string(index);
  }

  std::string file(int64_t index, size_t field) const override {
    return fields_[field].form == Form::kFile ? path_of(fields_[field], index) : key(index);
  }

  std::vector<int64_t> integer_column(std::string_view name) const override {
    for (const ManifestField& field : fields_) {
      if (field.field.name == name && field.form == Form::kInteger) return field.integers;
    }
    return {};
  }

  std::vector<std::string> classes() const override {
    for (const ManifestField& field : fields_) {
      if (field.classes.size() > 0) return field.classes.names();
    }
    return {};
  }

  std::string description() const override {
    std::string out = "manifest " + file_ + " (" + count_text(size_, "record");
    if (const auto count = static_cast<int64_t>(classes().size()); count > 0) {
      out += ", " + count_text(count, "class", "classes");
    }
    return out + ")";
  }

 private:
  std::string path_of(const ManifestField& field, int64_t index) const {
    const std::string_view path = field.names[index];
    return (path.starts_with('/') ? "" : folder_) + std::string(path) + field.suffix;
  }

  void read_field(size_t at, int64_t record, RecordData& out) const {
    const ManifestField& field = fields_[at];
    FieldData& data = out.fields[at];
    switch (field.form) {
      case Form::kFile:
        return read_named_picture(path_of(field, record), root(), record, at, at, out);
      case Form::kText: {
        const std::string_view text = field.names[record];
        data.bytes = bytes_from_text(text);
        return;
      }
      case Form::kInteger:
        data.scalar = field.integers[record];
        return;
      case Form::kNumber: {
        const size_t bytes = size_of(field.field.dtype);
        data.bytes = {field.numbers.data() + record * bytes, bytes};
      }
    }
  }

  static void add_field(const ManifestField& field, Fingerprint& print) {
    print.add(field.field.name);
    print.add(static_cast<uint64_t>(field.field.kind));
    print.add(name_of(field.field.dtype));
    for (const std::string& name : field.classes.names()) print.add(name);
    for (int64_t r = 0; r < field.names.size(); ++r) print.add(field.names[r]);
    for (const int64_t value : field.integers) print.add(static_cast<uint64_t>(value));
    print.add(text_from_bytes(field.numbers));
  }

  std::string file_;
  std::string folder_;  // base of the paths, with a final slash; empty: the current one
  std::vector<ManifestField> fields_;
  int64_t size_;
  bool has_files_ = false;
  Schema schema_;
  uint64_t fingerprint_ = 0;
};

bool is_json_lines(std::string_view head) {
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  const size_t first = head.find_first_not_of(" \t\r\n");
  return first != head.npos && head[first] == '{';
}

bool is_manifest(const std::string& path) {
  const bool json = has_suffix(path, ".jsonl") || has_suffix(path, ".ndjson");
  if (!json && !has_suffix(path, ".csv") && !has_suffix(path, ".tsv")) return false;
  std::array<uint8_t, 4096> first;
  const Result<size_t> count = read_prefix(path, first);
  if (!count) return false;
  const std::string_view head(reinterpret_cast<const char*>(first.data()), *count);
  // accepted here so that opening reports the error
  if (is_utf16(head)) return json || has_suffix(path, ".tsv");
  return json ? is_json_lines(head) : looks_like_csv_manifest(head);
}

// If no column has paths, the column of ids whose first values plus a suffix are files in `folder`.
// None if there is none.
std::optional<std::string> column_of_ids(const FileTable& files, const ManifestTable& table) {
  for (const ManifestColumn& column : table.columns) {
    if (column.values.size() > 0 && has_media_suffix(column.values[0])) return {};
  }
  for (const ManifestColumn& column : table.columns) {
    if (!is_heading_of_files(column.name)) continue;
    const NameList& ids = column.values;
    const auto suffix = suffix_of_records(
        files, ids.size(), [&](int64_t i) { return std::string(ids[i]); }, Missing::kAllowed);
    if (suffix && has_picture_suffix("x" + *suffix)) return column.name;
  }
  return {};
}

SourcePtr open_manifest(const std::string& path, const Arguments& arguments,
                        const Progress& progress) {
  Result<File> file = File::open(path);
  if (!file) throw Exception(std::move(file.error()));
  const auto text = [&](const char* name) {
    return arguments.is_none(name) ? std::optional<std::string>() : arguments.text(name);
  };
  ManifestOptions options{.image = text("image"),
                          .label = text("label"),
                          .classes = classes_argument(arguments),
                          .fill_missing = arguments.text("missing") == "fill"};
  if (!arguments.is_none("fields")) options.fields = arguments.texts("fields");
  if (!arguments.is_none("floats")) {
    options.floats = arguments.text("floats") == "float64" ? DType::kFloat64 : DType::kFloat32;
  }
  std::array<uint8_t, 4096> first;
  const Result<size_t> count = read_prefix(path, first);
  if (!count) throw Exception(count.error());
  ManifestTable table = is_json_lines({reinterpret_cast<const char*>(first.data()), *count})
                            ? read_json_lines(*file, options.fill_missing, progress)
                            : read_csv(*file, progress);
  const std::string folder = folder_of_paths(path, arguments);
  const FileTable files{.name = path, .folder = folder};
  if (!options.image) options.image = column_of_ids(files, table);
  const auto size = static_cast<int64_t>(table.lines.size());
  std::vector<ManifestField> fields = fields_of(std::move(table), std::move(options), *file);
  for (ManifestField& field : fields) {
    if (field.form != Form::kFile) continue;
    const auto name_at = [&](int64_t i) { return std::string(field.names[i]); };
    field.suffix = *suffix_of_records(files, size, name_at);
  }
  return std::make_shared<ManifestSource>(path, folder, std::move(fields), size);
}

const FormatRecord kManifest{
    .name = "manifest",
    .doc =
        "A table of images: CSV (.csv, .tsv) with a header of three or more columns, or JSON lines "
        "(.jsonl, .ndjson). A column of image paths becomes the field image (other image columns "
        "keep their names), a column named label, class or similar becomes the field label; other "
        "columns become int64, float32, float64 or text fields.",
    .example = "hr.manifest(\"train.csv\", image=\"path\", label=\"species\")",
    .params =
        {root_param(),
         {.name = "image",
          .type = ParamType::kString,
          .doc = "The column with the paths. None: the first one in which all values have an image "
                 "suffix."},
         {.name = "label",
          .type = ParamType::kString,
          .doc = "The column with the labels, integers or names. None: label, labels, class, "
                 "target or category, if one of these exists."},
         {.name = "fields",
          .type = ParamType::kStrings,
          .doc = "Columns to read in addition to the image, the label, and a single audio or "
                 "video column. None: all."},
         {.name = "missing",
          .type = ParamType::kString,
          .doc = "\"error\": a missing key or number, or a null, is an error. \"fill\": numbers "
                 "become NaN, text becomes empty.",
          .fallback = std::string("error"),
          .choices = {"error", "fill"}},
         {.name = "floats",
          .type = ParamType::kString,
          .doc = "The dtype of numbers with fractions. None: float32, or float64 for a column in "
                 "which distinct values would become equal in float32 (large numbers, or many "
                 "digits).",
          .choices = {"float32", "float64"}},
         classes_param()},
    .recognizes = is_manifest,
    .open = open_manifest};
const Register<FormatRecord> registered_manifest_format(kManifest);

}  // namespace
}  // namespace headrace
