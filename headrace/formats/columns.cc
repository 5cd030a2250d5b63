// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/columns.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>

#include "headrace/base/registry.h"
#include "headrace/formats/classes.h"
#include "headrace/formats/fingerprint.h"
#include "headrace/formats/labeled_files.h"
#include "headrace/formats/name_list.h"
#include "headrace/formats/wording.h"

namespace headrace {
namespace {

constexpr ErrorCode kBadColumns{
    "HR0420", ErrorKind::kConfig, "columns do not fit",
    "hr.records() takes one list or array for each field, all of the same length: lists of file "
    "paths, arrays whose first dimension is the record, or lists of strings. Pictures in memory "
    "are "
    "uint8 of shape (N, C, H, W) or (N, H, W)."};
const Register<ErrorCode> registered_bad_columns(kBadColumns);

[[noreturn]] void bad_column(const std::string& name, const std::string& what,
                             const std::string& hint = {}) {
  raise(kBadColumns, "field '" + name + "': " + what, hint);
}

bool is_picture(FieldKind kind) { return kind == FieldKind::kImage || kind == FieldKind::kMask; }

bool is_integer(DType dtype) { return !is_floating(dtype) && dtype != DType::kBool; }

// "mask", "masks", "image", "images" say what they are.
std::optional<FieldKind> picture_named(std::string_view name) {
  if (name == "mask" || name == "masks") return FieldKind::kMask;
  if (name == "image" || name == "images") return FieldKind::kImage;
  return {};
}

// What read() needs of a column.
struct Cell {
  enum class Form : uint8_t { kInMemory, kScalar, kFile, kText };
  Form form = Form::kInMemory;
  const uint8_t* data = nullptr;  // kInMemory: of record 0; kScalar: int64 values
  size_t bytes = 0;               // kInMemory: of one record
  NameList names;                 // kFile: paths; kText: values
  size_t buffer = 0;              // kFile: which of a record's own buffers
  std::vector<int64_t> numbers;   // kScalar: where they had to be converted
  std::shared_ptr<const void> owner;
  ClassList classes;
};

std::string shape_text(const Shape& shape) {
  std::string out = "(N";
  for (int64_t size : shape) out += ", " + std::to_string(size);
  return out + ")";
}

template <class Number>
void widen(const ArrayColumn& array, const std::string& name, std::vector<int64_t>& out) {
  for (int64_t i = 0; i < array.count; ++i) {
    Number value;
    std::memcpy(&value, static_cast<const Number*>(array.data) + i, sizeof value);
    if (std::is_same_v<Number, uint64_t> &&
        static_cast<uint64_t>(value) > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      bad_column(name, "label " + std::to_string(value) + " of record " + std::to_string(i) +
                           " does not fit into int64");
    }
    out[i] = static_cast<int64_t>(value);
  }
}

std::vector<int64_t> int64_from(const ArrayColumn& array, const std::string& name) {
  std::vector<int64_t> out(array.count);
  switch (array.dtype) {
    case DType::kUInt8:
      widen<uint8_t>(array, name, out);
      break;
    case DType::kInt8:
      widen<int8_t>(array, name, out);
      break;
    case DType::kInt16:
      widen<int16_t>(array, name, out);
      break;
    case DType::kInt32:
      widen<int32_t>(array, name, out);
      break;
    case DType::kInt64:
      widen<int64_t>(array, name, out);
      break;
    case DType::kUInt16:
      widen<uint16_t>(array, name, out);
      break;
    case DType::kUInt32:
      widen<uint32_t>(array, name, out);
      break;
    case DType::kUInt64:
      widen<uint64_t>(array, name, out);
      break;
    default:
      bad_column(name, "labels are integers, not " + std::string(name_of(array.dtype)));
  }
  return out;
}

FieldKind kind_of(const ArrayColumn& array, const Column& column) {
  if (column.kind) return *column.kind;
  const std::optional<FieldKind> picture = picture_named(column.name);
  const size_t dimensions = array.shape.size();
  if (picture && array.dtype == DType::kUInt8 && (dimensions == 2 || dimensions == 3)) {
    return *picture;
  }
  if (column.name == "label" && dimensions == 0 && is_integer(array.dtype)) {
    return FieldKind::kLabel;
  }
  return FieldKind::kTensor;
}

// (H, W) becomes (1, H, W); channels come first.
Shape picture_shape(const ArrayColumn& array, const std::string& name) {
  Shape shape = array.shape;
  const std::string got =
      " (got " + std::string(name_of(array.dtype)) + " " + shape_text(array.shape) + ")";
  if (array.dtype != DType::kUInt8) bad_column(name, "pictures in memory are uint8" + got);
  if (shape.size() == 2) shape.insert(shape.begin(), 1);
  if (shape.size() != 3)
    bad_column(name, "pictures have the shape (N, C, H, W) or (N, H, W)" + got);
  if (shape[0] > 4 && shape[2] >= 1 && shape[2] <= 4) {
    bad_column(name, "the channels come first" + got, "use array.transpose(0, 3, 1, 2)");
  }
  if (shape[0] < 1 || shape[0] > 4) bad_column(name, "pictures have 1 to 4 channels" + got);
  if (shape[1] < 1 || shape[2] < 1) bad_column(name, "pictures need at least one pixel" + got);
  return shape;
}

Field make_array(ArrayColumn& array, const Column& column, Cell& cell) {
  const FieldKind kind = kind_of(array, column);
  Field field{.name = column.name, .kind = kind, .dtype = array.dtype, .shape = array.shape};
  if (array.count < 0 ||
      std::any_of(array.shape.begin(), array.shape.end(), [](int64_t size) { return size < 0; })) {
    bad_column(column.name, "negative size in " + shape_text(array.shape));
  }
  cell.owner = std::move(array.owner);
  cell.data = static_cast<const uint8_t*>(array.data);
  cell.bytes = static_cast<size_t>(element_count(array.shape)) * size_of(array.dtype);
  if (is_picture(kind)) field.shape = picture_shape(array, column.name);
  if (kind == FieldKind::kText || kind == FieldKind::kBytes) {
    bad_column(column.name, "an array is no " + std::string(name_of(kind)),
               "give a list of strings or of paths");
  }
  const bool label = kind == FieldKind::kLabel;
  if (label && !array.shape.empty()) {
    bad_column(column.name, "labels are one number a record (got " + shape_text(array.shape) + ")");
  }
  if (!label && !(array.shape.empty() && array.dtype == DType::kInt64)) return field;
  field.dtype = DType::kInt64;
  cell.form = Cell::Form::kScalar;
  const bool aligned = reinterpret_cast<uintptr_t>(array.data) % alignof(int64_t) == 0;
  if (array.dtype != DType::kInt64 || !aligned) {
    cell.numbers = int64_from(array, column.name);
    cell.data = reinterpret_cast<const uint8_t*>(cell.numbers.data());
  }
  return field;
}

Field make_files(PathColumn& files, const Column& column, Cell& cell) {
  const FieldKind kind =
      column.kind ? *column.kind : picture_named(column.name).value_or(FieldKind::kImage);
  if (kind == FieldKind::kLabel || kind == FieldKind::kTensor) {
    bad_column(column.name, "files hold pictures, text or bytes, no " + std::string(name_of(kind)),
               "read them into an array first");
  }
  cell.form = Cell::Form::kFile;
  for (size_t i = 0; i < files.paths.size(); ++i) {
    if (files.paths[i].empty()) {
      bad_column(column.name, "the path of record " + std::to_string(i) + " is empty");
    }
    cell.names.add(files.paths[i]);
  }
  Field field{.name = column.name, .kind = kind};
  if (is_picture(kind)) {
    field.shape = {-1, -1, -1};
    field.encoded = true;
  }
  return field;
}

Field make_text(TextColumn& text, const Column& column, Cell& cell) {
  const FieldKind kind = column.kind              ? *column.kind
                         : column.name == "label" ? FieldKind::kLabel
                                                  : FieldKind::kText;
  if (kind == FieldKind::kLabel) {
    cell.form = Cell::Form::kScalar;
    cell.classes = ClassList::found(text.values);
    for (const std::string& name : text.values) cell.numbers.push_back(*cell.classes.number(name));
    cell.data = reinterpret_cast<const uint8_t*>(cell.numbers.data());
    return Field{.name = column.name, .kind = kind, .dtype = DType::kInt64};
  }
  if (kind != FieldKind::kText && kind != FieldKind::kBytes) {
    bad_column(column.name, "strings are text, bytes or labels, no " + std::string(name_of(kind)));
  }
  cell.form = Cell::Form::kText;
  for (const std::string& value : text.values) cell.names.add(value);
  return Field{.name = column.name, .kind = kind};
}

// Arrays may be large: their type, and what stands at sixteen places, tell them apart.
void add_array(const Cell& cell, int64_t count, Fingerprint& print) {
  constexpr int64_t kPlaces = 16;
  constexpr size_t kMost = 64;
  print.add(uint64_t{cell.bytes});
  for (int64_t i = 0; i < std::min(kPlaces, count); ++i) {
    const int64_t record = count <= kPlaces ? i : count / kPlaces * i;
    print.add(std::string_view(reinterpret_cast<const char*>(cell.data) + record * cell.bytes,
                               std::min(cell.bytes, kMost)));
  }
}

class ColumnSource final : public Source {
 public:
  ColumnSource(Schema schema, std::vector<Cell> cells, int64_t size)
      : schema_(std::move(schema)), cells_(std::move(cells)), size_(size) {
    for (Cell& cell : cells_) {
      cell.names.shrink();
      if (cell.form == Cell::Form::kFile) cell.buffer = files_++;
    }
    fingerprint_ = make_fingerprint();
  }

  int64_t size() const override { return size_; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override {
    return files_ > 0 ? ReadStyle::kFiles : ReadStyle::kMemory;
  }
  uint64_t fingerprint() const override { return fingerprint_; }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    std::string path;
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t record = indices[i];
      begin_record(record, cells_.size(), files_, out[i]);
      for (size_t field = 0; field < cells_.size(); ++field) {
        if (wanted[field]) read_cell(cells_[field], record, field, path, out[i]);
      }
    }
  }

  std::string key(int64_t index) const override {
    for (const Cell& cell : cells_) {
      if (cell.form == Cell::Form::kFile) return std::string(cell.names[index]);
    }
    return std::to_string(index);
  }

  // That of the first file, for want of a better.
  std::string root() const override {
    for (const Cell& cell : cells_) {
      if (cell.form != Cell::Form::kFile || size_ == 0) continue;
      const std::string_view path = cell.names[0];
      const size_t slash = path.rfind('/');
      return slash == std::string_view::npos ? "." : std::string(path.substr(0, slash + 1));
    }
    return {};
  }

  std::vector<int64_t> integer_column(std::string_view field) const override {
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (schema_[i].name != field || cells_[i].form != Cell::Form::kScalar) continue;
      const auto* values = reinterpret_cast<const int64_t*>(cells_[i].data);
      return {values, values + size_};
    }
    return {};
  }

  std::vector<std::string> classes() const override {
    for (const Cell& cell : cells_) {
      if (cell.classes.size() > 0) return cell.classes.names();
    }
    return {};
  }

  std::string description() const override {
    std::string names;
    for (const Field& field : schema_) names += (names.empty() ? "" : ", ") + field.name;
    return "records of " + names + " (" + counted(size_, "record") + ")";
  }

 private:
  static void read_cell(const Cell& cell, int64_t record, size_t field, std::string& path,
                        RecordData& out) {
    FieldData& data = out.fields[field];
    switch (cell.form) {
      case Cell::Form::kInMemory:
        data.bytes = {cell.data + record * cell.bytes, cell.bytes};
        break;
      case Cell::Form::kScalar:
        data.scalar = reinterpret_cast<const int64_t*>(cell.data)[record];
        break;
      case Cell::Form::kText: {
        const std::string_view text = cell.names[record];
        data.bytes = {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
        break;
      }
      case Cell::Form::kFile:
        path = cell.names[record];
        read_file_field(path, record, field, cell.buffer, out);
    }
  }

  uint64_t make_fingerprint() const {
    Fingerprint print;
    print.add("records");
    print.add(static_cast<uint64_t>(size_));
    for (size_t i = 0; i < cells_.size(); ++i) {
      const Cell& cell = cells_[i];
      print.add(schema_[i].name);
      print.add(static_cast<uint64_t>(schema_[i].kind));
      print.add(name_of(schema_[i].dtype));
      for (int64_t size : schema_[i].shape) print.add(static_cast<uint64_t>(size));
      for (const std::string& name : cell.classes.names()) print.add(name);
      for (int64_t record = 0; record < cell.names.size(); ++record) print.add(cell.names[record]);
      if (cell.form == Cell::Form::kScalar) {
        const auto* values = reinterpret_cast<const int64_t*>(cell.data);
        for (int64_t record = 0; record < size_; ++record) {
          print.add(static_cast<uint64_t>(values[record]));
        }
      }
      if (cell.form == Cell::Form::kInMemory) add_array(cell, size_, print);
    }
    return print.value();
  }

  Schema schema_;
  std::vector<Cell> cells_;
  int64_t size_;
  size_t files_ = 0;  // columns that are files
  uint64_t fingerprint_ = 0;
};

int64_t length_of(const Column& column) {
  if (const auto* array = std::get_if<ArrayColumn>(&column.values)) return array->count;
  if (const auto* files = std::get_if<PathColumn>(&column.values)) {
    return static_cast<int64_t>(files->paths.size());
  }
  return static_cast<int64_t>(std::get<TextColumn>(column.values).values.size());
}

void check(const std::vector<Column>& columns) {
  if (columns.empty()) raise(kBadColumns, "no field was given", "hr.records(image=[...])");
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string& name = columns[i].name;
    const auto is_word = [](unsigned char c) { return c == '_' || std::isalnum(c) || c >= 128; };
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ||
        !std::all_of(name.begin(), name.end(), is_word)) {
      bad_column(name, "a field's name is a word", "letters, digits and _, no digit first");
    }
    if (name == "id" || name == "key" || name == "valid") {
      bad_column(name, "every source has a field of this name already", "choose another");
    }
    for (size_t j = 0; j < i; ++j) {
      if (columns[j].name == name) bad_column(name, "it is there twice");
    }
    if (length_of(columns[i]) != length_of(columns[0])) {
      bad_column(name,
                 "it has " + counted(length_of(columns[i]), "record") + ", but '" +
                     columns[0].name + "' has " + grouped(length_of(columns[0])),
                 "all fields need the same number of records");
    }
  }
}

}  // namespace

SourcePtr records(std::vector<Column> columns) {
  check(columns);
  const int64_t size = length_of(columns[0]);
  Schema schema;
  std::vector<Cell> cells(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    Column& column = columns[i];
    struct Make {
      const Column& column;
      Cell& cell;
      Field operator()(ArrayColumn& array) const { return make_array(array, column, cell); }
      Field operator()(PathColumn& files) const { return make_files(files, column, cell); }
      Field operator()(TextColumn& text) const { return make_text(text, column, cell); }
    };
    schema.push_back(std::visit(Make{column, cells[i]}, column.values));
    column.values = TextColumn{};  // free the caller's copy before the next is packed
  }
  return std::make_shared<ColumnSource>(std::move(schema), std::move(cells), size);
}

}  // namespace headrace
