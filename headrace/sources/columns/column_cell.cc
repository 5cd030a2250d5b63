// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/columns/column_cell.h"

#include <algorithm>

#include "headrace/base/text.h"
#include "headrace/fields/media.h"
#include "headrace/sources/named_files.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

const ErrorCode kBadColumns{
    "HR0420", ErrorKind::kConfig, "columns do not match",
    "hr.records() takes one list or array per field, all of the same length: lists of file paths, "
    "arrays whose first dimension indexes the records, or lists of strings. Images in memory are "
    "uint8 of shape (N, C, H, W) or (N, H, W)."};

std::string below(const std::string& root, const std::string& path) {
  return root == "." || path.starts_with('/') ? path : joined(root, path);
}

std::string file_dtypes_text() {
  std::string out;
  for (const MediaRecord* media : all_media()) out.append(media->noun).append("s, ");
  return out + "text or bytes";
}

void check_which(const std::vector<uint32_t>& which, size_t values, const Column& column) {
  const auto beyond = std::ranges::find_if(which, [&](uint32_t name) { return name >= values; });
  if (beyond == which.end()) return;
  bad_column(column.name, "record " + std::to_string(beyond - which.begin()) + " has value " +
                              std::to_string(*beyond) + " of " + std::to_string(values));
}

Field make_files(PathColumn& files, const Column& column, Cell& cell) {
  const FieldKind kind =
      column.kind ? *column.kind : media_kind_named(column.name).value_or(FieldKind::kImage);
  if (kind == FieldKind::kLabel || kind == FieldKind::kTensor) {
    bad_column(column.name,
               "files hold " + file_dtypes_text() + ", not " + std::string(name_of(kind)),
               "read them into an array first");
  }
  cell.form = Cell::Form::kFile;
  for (size_t i = 0; i < files.paths.size(); ++i) {
    if (files.paths[i].empty()) {
      bad_column(column.name, "the path of record " + std::to_string(i) + " is empty");
    }
    cell.names.add(files.paths[i]);
  }
  check_which(files.which, files.paths.size(), column);
  cell.which = std::move(files.which);
  cell.root = files.root;
  cell.times = files.times;
  cell.folder = current_folder();
  if (!files.root.empty()) {
    if (!files.outside) refuse_outside(cell.names, "");
    cell.names = {};
    for (const std::string& path : files.paths) cell.names.add(below(files.root, path));
  }
  Field field{.name = column.name, .kind = kind};
  if (!is_string(kind) && !take_encoded(kind, field)) {
    bad_column(column.name,
               "files hold " + file_dtypes_text() + ", no " + std::string(name_of(kind)));
  }
  return field;
}

Field make_text(TextColumn& text, const Column& column, Cell& cell) {
  const FieldKind kind = column.kind              ? *column.kind
                         : column.name == "label" ? FieldKind::kLabel
                                                  : FieldKind::kText;
  if (kind == FieldKind::kLabel) {
    if (!text.which.empty()) bad_column(column.name, "shared texts are not labels");
    cell.form = Cell::Form::kScalar;
    const ClassList classes = ClassList::found(text.values);
    for (const std::string& name : text.values) cell.numbers.push_back(*classes.number(name));
    cell.classes = classes.names();
    cell.data = reinterpret_cast<const uint8_t*>(cell.numbers.data());
    return Field{.name = column.name, .kind = kind, .dtype = DType::kInt64};
  }
  if (kind != FieldKind::kText && kind != FieldKind::kBytes) {
    bad_column(column.name,
               "strings can be text, bytes or labels, not " + std::string(name_of(kind)));
  }
  check_which(text.which, text.values.size(), column);
  cell.which = std::move(text.which);
  cell.form = Cell::Form::kText;
  for (const std::string& value : text.values) cell.names.add(value);
  return Field{.name = column.name, .kind = kind};
}

}  // namespace

std::optional<FieldKind> media_kind_named(std::string_view name) {
  if (name == "mask" || name == "masks") return FieldKind::kMask;
  const MediaRecord* const media = media_named(name == "images" ? "image" : name);
  return media ? std::optional(media->kind) : std::nullopt;
}

bool take_encoded(FieldKind kind, Field& field) {
  field.kind = FieldKind::kBytes;
  return record_of(kind).take(field);
}

void Cell::set_path(int64_t record, std::string& path) const {
  path = name(record);
  if (is_relative_path(path)) path = joined(folder, path);
}

void bad_column(const std::string& name, const std::string& what, const std::string& hint) {
  raise(kBadColumns, "field '" + name + "': " + what, hint);
}

void no_columns() { raise(kBadColumns, "no field was given", "hr.records(image=[...])"); }

Field make_cell(Column& column, Cell& cell) {
  cell.classes = column.classes;
  struct Make {
    const Column& column;
    Cell& cell;
    Field operator()(ArrayColumn& array) const { return make_array(array, column, cell); }
    Field operator()(FileArrayColumn& array) const { return make_file_array(array, column, cell); }
    Field operator()(BlobColumn& blobs) const { return make_blobs(blobs, column, cell); }
    Field operator()(PathColumn& files) const { return make_files(files, column, cell); }
    Field operator()(TextColumn& text) const { return make_text(text, column, cell); }
    Field operator()(WindowColumn& rows) const { return make_window(rows, column, cell); }
  };
  Field field = std::visit(Make{column, cell}, column.values);
  if (!column.classes.empty() && field.kind != FieldKind::kLabel) {
    bad_column(column.name, "only labels have classes");
  }
  return field;
}

int64_t length_of(const Column& column) {
  struct Length {
    int64_t operator()(const ArrayColumn& array) const { return array.count; }
    int64_t operator()(const FileArrayColumn& array) const { return array.count(); }
    int64_t operator()(const BlobColumn& blobs) const {
      int64_t count = 0;
      for (const BlobColumn::Part& part : blobs.parts) count += part.count;
      return count;
    }
    int64_t operator()(const PathColumn& files) const {
      return static_cast<int64_t>(files.which.empty() ? files.paths.size() : files.which.size());
    }
    int64_t operator()(const TextColumn& text) const {
      return static_cast<int64_t>(text.which.empty() ? text.values.size() : text.which.size());
    }
    int64_t operator()(const WindowColumn& rows) const { return rows.values.count; }
  };
  return std::visit(Length{}, column.values);
}

void add_cell(const Field& field, const Cell& cell, int64_t count, Fingerprint& print) {
  print.add(field.name);
  print.add(static_cast<uint64_t>(field.kind));
  print.add(name_of(field.dtype));
  for (int64_t size : field.shape) print.add(static_cast<uint64_t>(size));
  for (const std::string& name : cell.classes) print.add(name);
  for (int64_t record = 0; record < cell.names.size(); ++record) {
    std::string_view name = cell.names[record];
    // Excludes the root, so that a copy of a dataset elsewhere has the same fingerprint.
    if (!cell.which.empty() && name.starts_with(cell.root)) name.remove_prefix(cell.root.size());
    print.add(name);
  }
  if (cell.form == Cell::Form::kScalar) {
    const auto* values = reinterpret_cast<const int64_t*>(cell.data);
    for (int64_t record = 0; record < count; ++record) {
      print.add(static_cast<uint64_t>(values[record]));
    }
  }
  for (const uint32_t name : cell.which) print.add(uint64_t{name});
  for (const int64_t offset : cell.offsets) print.add(static_cast<uint64_t>(offset));
  if (cell.form == Cell::Form::kWindow) {
    for (const int64_t end : cell.part_ends) print.add(static_cast<uint64_t>(end));
  }
  const bool is_array = cell.form == Cell::Form::kInMemory || cell.form == Cell::Form::kFileArray ||
                        (cell.form == Cell::Form::kWindow && cell.data);
  if (is_array) add_array(cell, count, print);
  if (cell.form == Cell::Form::kBlob) add_blobs(cell, count, print);
}

}  // namespace headrace
