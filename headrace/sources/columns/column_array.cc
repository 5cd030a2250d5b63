// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "headrace/fields/media.h"
#include "headrace/fields/pictures.h"
#include "headrace/sources/columns/array_elements.h"
#include "headrace/sources/columns/column_cell.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

constexpr uint64_t kSmallRecord = 64;                   // bytes per record of a column to load
constexpr uint64_t kSmallColumn = uint64_t{256} << 20;  // bytes of such a column
constexpr int64_t kMaxLabels = int64_t{1} << 28;        // labels in files; 2 GiB as int64
constexpr int64_t kLongestSide = int64_t{1} << 30;      // of an image

std::string shape_text(const Shape& shape) {
  std::string out = "(N";
  for (int64_t size : shape) out += ", " + std::to_string(size);
  return out + ")";
}

// Labels, and values that are not aligned for reading as int64.
std::vector<int64_t> int64_from(const ArrayColumn& array, const std::string& name) {
  const auto* const values = static_cast<const uint8_t*>(array.data);
  std::vector<int64_t> out(static_cast<size_t>(array.count));
  convert_integers(values, array.dtype, array.count, DType::kInt64,
                   reinterpret_cast<uint8_t*>(out.data()));
  if (array.dtype == DType::kUInt64) {
    const auto bad = std::ranges::find_if(out, [](int64_t value) { return value < 0; });
    if (bad != out.end()) {
      bad_column(name, "label " + std::to_string(static_cast<uint64_t>(*bad)) + " of record " +
                           std::to_string(bad - out.begin()) + " does not fit into int64");
    }
  }
  return out;
}

// The type and shape of an array's records, in memory or in files.
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

// The shape as an image: (H, W) becomes (1, H, W); channels must come first.
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
  if (shape[0] < 1 || shape[0] > kMaxChannels) {
    bad_column(name, "images have 1 to 16 channels" + got);
  }
  if (shape[1] < 1 || shape[2] < 1) bad_column(name, "images need at least one pixel" + got);
  if (shape[1] > kLongestSide || shape[2] > kLongestSide) {
    bad_column(name, "images cannot be that large" + got);
  }
  return shape;
}

// The field of an array; its kind and shape are inferred from name and type.
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
               "labels are one number per record (got " + shape_text(array.shape) + ")");
  }
  if (label && !is_integer(array.dtype)) {
    bad_column(column.name, "labels are integers, not " + std::string(name_of(array.dtype)));
  }
  if (label) field.dtype = DType::kInt64;
  return field;
}

bool is_scalar(const Field& field) { return field.shape.empty() && field.dtype == DType::kInt64; }

// Loads the whole array into memory, which the column then owns.
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

}  // namespace

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

Field make_file_array(FileArray& array, const Column& column, Cell& cell) {
  if (const std::string problem = array.problem(); !problem.empty()) {
    bad_column(column.name, problem, "the file is truncated or damaged: rewrite it");
  }
  if (array.record_bytes() == 0) bad_column(column.name, "its records have no element");
  const Field field = array_field({array.dtype, array.shape}, column);
  const uint64_t bytes = array.record_bytes();
  const int64_t count = array.count();
  if (is_scalar(field) && count > kMaxLabels) {
    bad_column(column.name, "it has " + with_commas(count) +
                                " numbers, all held in memory, but the limit is " +
                                with_commas(kMaxLabels));
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

void add_array(const Cell& cell, int64_t count, Fingerprint& print) {
  constexpr int64_t kPlaces = 16;
  std::array<uint8_t, 64> begin;
  const size_t bytes = std::min(cell.bytes, begin.size());
  print.add(uint64_t{cell.bytes});
  for (int64_t i = 0; i < std::min(kPlaces, count); ++i) {
    const int64_t record = count <= kPlaces ? i : count / kPlaces * i;
    const uint8_t* place = begin.data();
    if (cell.form != Cell::Form::kFileArray) {
      place = cell.data + static_cast<size_t>(record) * cell.bytes;
    } else if (Result<void> read = cell.array.peek(record, {begin.data(), bytes}); !read) {
      throw Exception(std::move(read.error()));
    }
    print.add(std::string_view(reinterpret_cast<const char*>(place), bytes));
  }
}

}  // namespace headrace
