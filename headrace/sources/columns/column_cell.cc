// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/columns/column_cell.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "headrace/base/text.h"
#include "headrace/fields/media.h"
#include "headrace/fields/pictures.h"
#include "headrace/sources/named_files.h"
#include "headrace/sources/wording.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

const ErrorCode kBadColumns{
    "HR0420", ErrorKind::kConfig, "columns do not match",
    "hr.records() takes one list or array per field, all of the same length: lists of file paths, "
    "arrays whose first dimension is the record, or lists of strings. Images in memory are uint8 "
    "of shape (N, C, H, W) or (N, H, W)."};

constexpr uint64_t kSmallRecord = 64;                   // bytes; of a column that may be loaded
constexpr uint64_t kSmallColumn = uint64_t{256} << 20;  // all its bytes
constexpr int64_t kMostLabels = int64_t{1} << 28;       // of an array in files; 2 GiB as int64
constexpr int64_t kLongestSide = int64_t{1} << 30;      // of a picture

bool is_integer(DType dtype) { return !is_floating(dtype) && dtype != DType::kBool; }

// "mask", "masks", "image", "images", "audio", "video" say what they are.
std::optional<FieldKind> media_kind_named(std::string_view name) {
  if (name == "mask" || name == "masks") return FieldKind::kMask;
  const MediaRecord* const media = media_named(name == "images" ? "image" : name);
  return media ? std::optional(media->kind) : std::nullopt;
}

// A field of files' bytes becomes one of the kind.
bool take_encoded(FieldKind kind, Field& field) {
  field.kind = FieldKind::kBytes;
  return record_of(kind).take(field);
}

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

// The type and shape of an array's records, wherever the array lies.
struct ArrayType {
  DType dtype;
  const Shape& shape;
};

FieldKind kind_of(const ArrayType& array, const Column& column) {
  if (column.kind) return *column.kind;
  const std::optional<FieldKind> media = media_kind_named(column.name);
  const size_t dimensions = array.shape.size();
  if (media && !is_picture(*media)) {
    Field field{.name = {}, .dtype = array.dtype, .shape = array.shape};
    return record_of(*media).take(field) ? *media : FieldKind::kTensor;
  }
  if (media && array.dtype == DType::kUInt8 && (dimensions == 2 || dimensions == 3)) {
    return *media;
  }
  if (column.name == "label" && dimensions == 0 && is_integer(array.dtype)) {
    return FieldKind::kLabel;
  }
  return FieldKind::kTensor;
}

// (H, W) becomes (1, H, W); channels come first.
Shape picture_shape(const ArrayType& array, const std::string& name) {
  Shape shape = array.shape;
  const std::string got =
      " (got " + std::string(name_of(array.dtype)) + " " + shape_text(array.shape) + ")";
  if (!is_picture_dtype(array.dtype)) {
    bad_column(name, "images in memory are uint8, uint16, float32 or float16" + got);
  }
  if (shape.size() == 2) shape.insert(shape.begin(), 1);
  if (shape.size() != 3) bad_column(name, "images have the shape (N, C, H, W) or (N, H, W)" + got);
  if (shape[0] > 4 && shape[2] >= 1 && shape[2] <= 4) {
    bad_column(name, "the channels come first" + got, "use array.transpose(0, 3, 1, 2)");
  }
  if (shape[0] < 1 || shape[0] > kMostChannels) {
    bad_column(name, "images have 1 to 16 channels" + got);
  }
  if (shape[1] < 1 || shape[2] < 1) bad_column(name, "images need at least one pixel" + got);
  if (shape[1] > kLongestSide || shape[2] > kLongestSide) {
    bad_column(name, "no image is that large" + got);
  }
  return shape;
}

// The field of an array; its kind and shape follow from name and type.
Field array_field(const ArrayType& array, const Column& column) {
  Field field{.name = column.name,
              .kind = kind_of(array, column),
              .dtype = array.dtype,
              .shape = array.shape};
  if (is_picture(field.kind)) field.shape = picture_shape(array, column.name);
  if (field.kind == FieldKind::kText || field.kind == FieldKind::kBytes) {
    bad_column(column.name, "an array is not " + std::string(name_of(field.kind)),
               "give a list of strings or of paths");
  }
  const bool label = field.kind == FieldKind::kLabel;
  if (label && !array.shape.empty()) {
    bad_column(column.name,
               "labels are one number per record (got "
               "" + shape_text(array.shape) +
                   ")");
  }
  if (label && !is_integer(array.dtype)) {
    bad_column(column.name, "labels are integers, not " + std::string(name_of(array.dtype)));
  }
  if (label) field.dtype = DType::kInt64;
  return field;
}

bool is_scalar(const Field& field) { return field.shape.empty() && field.dtype == DType::kInt64; }

Field make_array(ArrayColumn& array, const Column& column, Cell& cell) {
  if (array.count < 0 ||
      std::any_of(array.shape.begin(), array.shape.end(), [](int64_t size) { return size < 0; })) {
    bad_column(column.name, "negative size in " + shape_text(array.shape));
  }
  cell.owner = std::move(array.owner);
  cell.data = static_cast<const uint8_t*>(array.data);
  cell.bytes = static_cast<size_t>(element_count(array.shape)) * size_of(array.dtype);
  const Field field = array_field({array.dtype, array.shape}, column);
  if (!is_scalar(field)) return field;
  cell.form = Cell::Form::kScalar;
  const bool aligned = reinterpret_cast<uintptr_t>(array.data) % alignof(int64_t) == 0;
  if (array.dtype != DType::kInt64 || !aligned) {
    cell.numbers = int64_from(array, column.name);
    cell.data = reinterpret_cast<const uint8_t*>(cell.numbers.data());
  }
  return field;
}

// The whole array in memory, which the column then owns.
ArrayColumn loaded(const FileArray& array) {
  if (const uint8_t* place = array.in_place()) {
    return {place, array.dtype, array.count(), array.shape, array.parts[0].memory};
  }
  const auto memory =
      std::make_shared<Buffer>(static_cast<size_t>(array.count()) * array.record_bytes());
  if (Result<void> read = array.load({memory->data(), memory->size()}); !read) {
    throw Exception(std::move(read.error()));
  }
  return {memory->data(), array.dtype, array.count(), array.shape, memory};
}

Field make_file_array(FileArray& array, const Column& column, Cell& cell) {
  if (const std::string problem = array.problem(); !problem.empty()) {
    bad_column(column.name, problem, "the file is truncated or damaged: write it again");
  }
  if (array.record_bytes() == 0) bad_column(column.name, "its records have no element");
  const Field field = array_field({array.dtype, array.shape}, column);
  const uint64_t bytes = array.record_bytes();
  const int64_t count = array.count();
  if (is_scalar(field) && count > kMostLabels) {
    bad_column(column.name, "it has " + grouped(count) + " numbers; all are held in memory, and " +
                                grouped(kMostLabels) + " is the cap");
  }
  const bool in_memory = std::any_of(array.parts.begin(), array.parts.end(),
                                     [](const FilePart& part) { return part.memory != nullptr; });
  if (is_scalar(field) || in_memory ||
      (bytes <= kSmallRecord && static_cast<uint64_t>(count) * bytes <= kSmallColumn)) {
    ArrayColumn memory = loaded(array);
    return make_array(memory, column, cell);
  }
  cell.form = Cell::Form::kFileArray;
  cell.bytes = bytes;
  cell.array = std::move(array);
  return field;
}

std::string below(const std::string& root, const std::string& path) {
  return root == "." || path.starts_with('/') ? path : joined(root, path);
}

std::string what_files_hold() {
  std::string out;
  for (const MediaRecord* media : all_media()) out.append(media->noun).append("s, ");
  return out + "text or bytes";
}

Field make_files(PathColumn& files, const Column& column, Cell& cell) {
  const FieldKind kind =
      column.kind ? *column.kind : media_kind_named(column.name).value_or(FieldKind::kImage);
  if (kind == FieldKind::kLabel || kind == FieldKind::kTensor) {
    bad_column(column.name,
               "files hold " + what_files_hold() + ", no " + std::string(name_of(kind)),
               "read them into an array first");
  }
  cell.form = Cell::Form::kFile;
  for (size_t i = 0; i < files.paths.size(); ++i) {
    if (files.paths[i].empty()) {
      bad_column(column.name, "the path of record " + std::to_string(i) + " is empty");
    }
    cell.names.add(files.paths[i]);
  }
  cell.root = files.root;
  cell.folder = current_folder();
  if (!files.root.empty()) {
    if (!files.outside) refuse_outside(cell.names, "");
    cell.names = {};
    for (const std::string& path : files.paths) cell.names.add(below(files.root, path));
  }
  Field field{.name = column.name, .kind = kind};
  if (!is_string(kind) && !take_encoded(kind, field)) {
    bad_column(column.name,
               "files hold " + what_files_hold() + ", no " + std::string(name_of(kind)));
  }
  return field;
}

Field make_text(TextColumn& text, const Column& column, Cell& cell) {
  const FieldKind kind = column.kind              ? *column.kind
                         : column.name == "label" ? FieldKind::kLabel
                                                  : FieldKind::kText;
  if (kind == FieldKind::kLabel) {
    cell.form = Cell::Form::kScalar;
    const ClassList classes = ClassList::found(text.values);
    for (const std::string& name : text.values) cell.numbers.push_back(*classes.number(name));
    cell.classes = classes.names();
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

// Whether the offsets rise inside of the data, so that no length read later can be wrong.
template <class Offset>
bool offsets_rise(const BlobColumn::Part& part, size_t item) {
  const auto* offsets = static_cast<const Offset*>(part.offsets);
  bool fine = offsets[0] >= 0;
  for (int64_t i = 0; i < part.count; ++i) fine = fine && offsets[i] <= offsets[i + 1];
  return fine && static_cast<uint64_t>(offsets[part.count]) <= part.data_bytes / item;
}

Field make_blobs(BlobColumn& blobs, const Column& column, Cell& cell) {
  const FieldKind kind = column.kind.value_or(FieldKind::kBytes);
  if (kind == FieldKind::kLabel || (kind != FieldKind::kTensor && blobs.dtype != DType::kUInt8)) {
    bad_column(column.name, "values of any length are not " + std::string(name_of(kind)));
  }
  for (const BlobColumn::Part& part : blobs.parts) {
    const size_t item = size_of(blobs.dtype);
    const bool fine = part.count == 0 || (part.wide ? offsets_rise<int64_t>(part, item)
                                                    : offsets_rise<int32_t>(part, item));
    if (!fine) bad_column(column.name, "the offsets of its values do not fit its data");
  }
  cell.form = Cell::Form::kBlob;
  cell.blobs = std::move(blobs);
  int64_t records = 0;
  for (const BlobColumn::Part& part : cell.blobs.parts) {
    cell.part_ends.push_back(records += part.count);
  }
  Field field{.name = column.name, .kind = kind, .dtype = cell.blobs.dtype};
  cell.bytes = size_of(cell.blobs.dtype);
  cell.is_vector = kind == FieldKind::kTensor;
  cell.may_be_null = kind == FieldKind::kText;
  if (cell.is_vector) field.shape = {-1};
  if (media_of(kind)) take_encoded(kind, field);
  return field;
}

void add_blobs(const Cell& cell, int64_t count, Fingerprint& print) {
  constexpr int64_t kPlaces = 64;
  std::array<uint8_t, 64> begin;
  for (int64_t i = 0; i < std::min(kPlaces, count); ++i) {
    const std::optional<Blob> blob = blob_of(cell, count <= kPlaces ? i : count / kPlaces * i);
    print.add(blob ? uint64_t{blob->bytes} : UINT64_MAX);
    if (!blob) continue;
    const std::span<uint8_t> first = std::span(begin).first(std::min(blob->bytes, begin.size()));
    if (Result<void> read = blob->read(cell.blobs, first); !read) {
      throw Exception(std::move(read.error()));
    }
    print.add(std::string_view(reinterpret_cast<const char*>(first.data()), first.size()));
  }
}

// Arrays may be large: their type, and what stands at sixteen places, tell them apart.
void add_array(const Cell& cell, int64_t count, Fingerprint& print) {
  constexpr int64_t kPlaces = 16;
  std::array<uint8_t, 64> begin;
  const size_t bytes = std::min(cell.bytes, begin.size());
  print.add(uint64_t{cell.bytes});
  for (int64_t i = 0; i < std::min(kPlaces, count); ++i) {
    const int64_t record = count <= kPlaces ? i : count / kPlaces * i;
    const uint8_t* place = begin.data();
    if (cell.form == Cell::Form::kInMemory) {
      place = cell.data + static_cast<size_t>(record) * cell.bytes;
    } else if (Result<void> read = cell.array.peek(record, {begin.data(), bytes}); !read) {
      throw Exception(std::move(read.error()));
    }
    print.add(std::string_view(reinterpret_cast<const char*>(place), bytes));
  }
}

}  // namespace

void Cell::set_path(int64_t record, std::string& path) const {
  path = names[record];
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
      return static_cast<int64_t>(files.paths.size());
    }
    int64_t operator()(const TextColumn& text) const {
      return static_cast<int64_t>(text.values.size());
    }
  };
  return std::visit(Length{}, column.values);
}

void add_cell(const Field& field, const Cell& cell, int64_t count, Fingerprint& print) {
  print.add(field.name);
  print.add(static_cast<uint64_t>(field.kind));
  print.add(name_of(field.dtype));
  for (int64_t size : field.shape) print.add(static_cast<uint64_t>(size));
  for (const std::string& name : cell.classes) print.add(name);
  for (int64_t record = 0; record < cell.names.size(); ++record) print.add(cell.names[record]);
  if (cell.form == Cell::Form::kScalar) {
    const auto* values = reinterpret_cast<const int64_t*>(cell.data);
    for (int64_t record = 0; record < count; ++record) {
      print.add(static_cast<uint64_t>(values[record]));
    }
  }
  if (cell.form == Cell::Form::kInMemory || cell.form == Cell::Form::kFileArray) {
    add_array(cell, count, print);
  }
  if (cell.form == Cell::Form::kBlob) add_blobs(cell, count, print);
}

Result<void> Blob::read(const BlobColumn& column, std::span<uint8_t> out) const {
  if (file >= 0) return column.files->read(static_cast<size_t>(file), position, out);
  std::copy_n(data, out.size(), out.begin());
  return {};
}

std::optional<Blob> blob_of(const Cell& cell, int64_t record) {
  const auto ends = std::ranges::upper_bound(cell.part_ends, record);
  if (ends != cell.part_ends.begin()) record -= *(ends - 1);
  const BlobColumn::Part& part =
      cell.blobs.parts[static_cast<size_t>(ends - cell.part_ends.begin())];
  const int64_t bit = part.first_bit + record;
  if (part.valid && !(part.valid[bit / 8] >> bit % 8 & 1)) return {};
  const auto place = [&](int64_t i) {
    return static_cast<size_t>(part.wide ? static_cast<const int64_t*>(part.offsets)[i]
                                         : static_cast<const int32_t*>(part.offsets)[i]);
  };
  const size_t item = size_of(cell.blobs.dtype), begin = place(record) * item;
  Blob blob{.file = part.file,
            .position = part.position + begin,
            .bytes = place(record + 1) * item - begin};
  if (part.file < 0) blob.data = part.data + begin;
  return blob;
}

}  // namespace headrace
