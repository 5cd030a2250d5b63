// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/hdf5/hdf5_input.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "headrace/base/text.h"
#include "headrace/sources/columns/array_elements.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

// Columns of numbers and of references to values are read when opening: 8 and 16 bytes per record.
constexpr uint64_t kSmallRow = 16, kSmallColumn = uint64_t{256} << 20;

// Where a padded fixed-length string ends, by h5py's rules.
size_t length_of(std::span<const uint8_t> text, Hdf5Type::Padding padding) {
  if (padding == Hdf5Type::Padding::kNullTerminated) {
    return static_cast<size_t>(std::find(text.begin(), text.end(), 0) - text.begin());
  }
  const uint8_t pad = padding == Hdf5Type::Padding::kSpacePadded ? ' ' : 0;
  size_t length = text.size();
  while (length > 0 && text[length - 1] == pad) --length;
  return length;
}

// REQUIRES: an integer type. None: it does not fit.
std::optional<int64_t> integer_from(std::span<const uint8_t> raw, DType dtype, bool big_endian) {
  uint64_t value = 0;
  for (size_t i = 0; i < raw.size(); ++i) {
    value = value << 8 | raw[big_endian ? i : raw.size() - 1 - i];
  }
  const bool is_signed = dtype == DType::kInt8 || dtype == DType::kInt16 ||
                         dtype == DType::kInt32 || dtype == DType::kInt64;
  if (!is_signed) {
    if (value > static_cast<uint64_t>(INT64_MAX)) return {};
    return static_cast<int64_t>(value);
  }
  const int unused = 64 - 8 * static_cast<int>(raw.size());
  return static_cast<int64_t>(value << unused) >> unused;
}

}  // namespace

Hdf5Input::Hdf5Input(const std::string& path, const std::vector<std::string>* fields,
                     std::vector<Hdf5FieldPlan>& plans, Hdf5ChunkCache& cache, uint64_t& loaded,
                     OpenBudget& budget)
    : file_(std::make_unique<Hdf5File>(Hdf5File::open(path))) {
  file_->charge_to(&budget);
  const std::vector<Hdf5Choice> choices = choose_hdf5_datasets(*file_, fields);
  std::vector<std::unique_ptr<Hdf5Dataset>> datasets;
  for (const Hdf5Choice& choice : choices) {
    datasets.push_back(std::make_unique<Hdf5Dataset>(*file_, choice.outline, cache));
  }
  if (plans.empty()) plans = plan_hdf5_fields(*file_, choices, datasets);
  records_ = static_cast<int64_t>(datasets[0]->rows());
  for (size_t i = 0; i < datasets.size(); ++i) {
    check_same(plans[i], *datasets[i]);
    columns_.push_back({std::move(datasets[i])});
    load(columns_.back(), loaded, budget);
  }
}

void Hdf5Input::check_same(const Hdf5FieldPlan& plan, const Hdf5Dataset& dataset) const {
  const Hdf5Type& type = dataset.type();
  const bool texts = type.what == Hdf5Type::Class::kText && plan.form == Hdf5Form::kText;
  if (type.what == plan.type.what && type.dtype == plan.type.dtype &&
      type.big_endian == plan.type.big_endian && dataset.row_shape() == plan.row_shape &&
      type.names == plan.type.names && (texts || type.bytes == plan.type.bytes)) {
    return;
  }
  hdf5_fields_do_not_fit(*file_, "it differs in type or shape from the first file",
                         "open only files with the same datasets together", dataset.path());
}

// If a column cannot be read, its records are bad, but not the file. If it would be too large, it
// is read record by record.
void Hdf5Input::load(Column& column, uint64_t& loaded, OpenBudget& budget) const {
  const Hdf5Dataset& dataset = *column.dataset;
  const uint64_t bytes = dataset.row_bytes() * dataset.rows();
  if (dataset.row_bytes() > kSmallRow || bytes > kSmallColumn - loaded) return;
  if (!budget.affords(bytes)) return;
  budget.spend(bytes, "a column");
  std::vector<uint8_t> rows(bytes);
  if (!dataset.read(0, dataset.rows(), rows)) return;
  column.rows = std::move(rows);
  loaded += bytes;
}

void Hdf5Input::add_to(Fingerprint& print) const {
  print.add(file_->file().size());
  for (const Column& column : columns_) {
    column.dataset->add_to(print);
    print.add(text_from_bytes(column.rows));
    for (int64_t number : column.numbers) print.add(static_cast<uint64_t>(number));
  }
}

void Hdf5Input::replace(size_t field, std::vector<int64_t> numbers) {
  columns_[field].numbers = std::move(numbers);
  columns_[field].rows = {};
}

Result<void> Hdf5Input::check_size(const Hdf5Dataset& dataset, uint64_t bytes, size_t most) const {
  if (bytes <= most && dataset.packed_bytes() <= most) return {};
  const bool chunk = bytes <= most;
  return hdf5_too_large(
      file_->file(),
      (chunk ? "its chunk has " : "the record has ") +
          with_commas(static_cast<int64_t>(chunk ? dataset.packed_bytes() : bytes)) +
          " bytes, which exceeds the limit of " + with_commas(static_cast<int64_t>(most)),
      chunk ? "raise memory_limit, or write the file with smaller chunks"
            : "raise memory_limit, or skip the record",
      dataset.path());
}

Result<std::span<const uint8_t>> Hdf5Input::row_of(size_t field, uint64_t row, size_t most,
                                                   Buffer& buffer) const {
  const Column& column = columns_[field];
  const uint64_t bytes = column.dataset->row_bytes();
  if (!column.rows.empty()) return std::span(column.rows).subspan(row * bytes, bytes);
  if (Result<void> fits = check_size(*column.dataset, bytes, most); !fits) {
    return std::move(fits.error());
  }
  buffer.resize(bytes);
  if (Result<void> read = column.dataset->read(row, 1, {buffer.data(), bytes}); !read) {
    return std::move(read.error());
  }
  return buffer.bytes();
}

Result<void> Hdf5Input::read_numbers(const Hdf5FieldPlan& plan, size_t field, uint64_t row,
                                     RecordData& out) const {
  Buffer &buffer = out.owned[2 * field], &moved = out.owned[2 * field + 1];
  Result<std::span<const uint8_t>> raw = row_of(field, row, out.max_bytes, buffer);
  if (!raw) return std::move(raw.error());
  if (raw->data() != buffer.data()) {  // size of a small column kept in memory
    buffer.resize(raw->size());
    std::memcpy(buffer.data(), raw->data(), raw->size());
  }
  const std::span<uint8_t> bytes(buffer.data(), buffer.size());
  make_native(bytes, plan.type.dtype, plan.type.big_endian);
  out.fields[field].bytes = bytes;
  if (!plan.channels_last) return {};
  moved.resize(bytes.size());
  move_channels_first(bytes.data(), plan.field.shape, size_of(plan.type.dtype), moved.data());
  out.fields[field].bytes = moved.bytes();
  return {};
}

Result<void> Hdf5Input::read_text(size_t field, uint64_t row, RecordData& out,
                                  Hdf5Place& place) const {
  const Column& column = columns_[field];
  Buffer& buffer = out.owned[2 * field];
  Result<std::span<const uint8_t>> raw = row_of(field, row, out.max_bytes, buffer);
  if (!raw) return std::move(raw.error());
  std::span<const uint8_t>& text = out.fields[field].bytes;
  if (column.dataset->type().what == Hdf5Type::Class::kText) {
    text = raw->first(length_of(*raw, column.dataset->type().padding));
    return {};
  }
  Result<std::span<uint8_t>> value =
      read_value(field, *raw, 1, out.max_bytes, out.owned[2 * field + 1], place);
  if (!value) return std::move(value.error());
  text = value->first(
      static_cast<size_t>(std::find(value->begin(), value->end(), 0) - value->begin()));
  return {};
}

Result<void> Hdf5Input::read_sequence(const Hdf5FieldPlan& plan, size_t field, uint64_t row,
                                      RecordData& out, Hdf5Place& place) const {
  Result<std::span<const uint8_t>> raw = row_of(field, row, out.max_bytes, out.owned[2 * field]);
  if (!raw) return std::move(raw.error());
  const size_t number_bytes = size_of(plan.type.dtype);
  Result<std::span<uint8_t>> value =
      read_value(field, *raw, number_bytes, out.max_bytes, out.owned[2 * field + 1], place);
  if (!value) return std::move(value.error());
  make_native(*value, plan.type.dtype, plan.type.big_endian);
  FieldData& data = out.fields[field];
  data.bytes = *value;
  if (plan.field.kind == FieldKind::kTensor) {
    data.shape = {static_cast<int64_t>(value->size() / number_bytes)};
  }
  return {};
}

Result<void> Hdf5Input::read_bytes(size_t field, uint64_t row, RecordData& out) const {
  Result<std::span<const uint8_t>> bytes = row_of(field, row, out.max_bytes, out.owned[2 * field]);
  if (!bytes) return std::move(bytes.error());
  out.fields[field].bytes = *bytes;
  return {};
}

Result<std::span<uint8_t>> Hdf5Input::read_value(size_t field, std::span<const uint8_t> element,
                                                 size_t number_bytes, size_t most, Buffer& buffer,
                                                 Hdf5Place& place) const {
  const Hdf5Dataset& dataset = *columns_[field].dataset;
  const Hdf5Reference reference = hdf5_reference(*file_, element);
  if (reference.is_empty()) {
    buffer.resize(0);
    return std::span<uint8_t>(buffer.data(), 0);
  }
  const uint64_t bytes = uint64_t{reference.count} * number_bytes;
  if (Result<void> fits = check_size(dataset, bytes, most); !fits) {
    return std::move(fits.error());
  }
  Result<std::span<uint8_t>> value = read_hdf5_value(*file_, reference, bytes, buffer, place);
  if (!value) value.error().where.member = dataset.path();
  return value;
}

Result<int64_t> Hdf5Input::integer(size_t field, uint64_t row) const {
  const Column& column = columns_[field];
  if (!column.numbers.empty()) return column.numbers[row];
  std::array<uint8_t, 8> memory;
  const Hdf5Dataset& dataset = *column.dataset;
  std::span<const uint8_t> raw = std::span(memory).first(dataset.row_bytes());
  if (!column.rows.empty()) {
    raw = std::span(column.rows).subspan(row * raw.size(), raw.size());
  } else if (Result<void> read = dataset.read(row, 1, std::span(memory).first(raw.size())); !read) {
    return std::move(read.error());
  }
  const std::optional<int64_t> value =
      integer_from(raw, dataset.type().dtype, dataset.type().big_endian);
  if (!value) {
    return hdf5_damaged(file_->file(), dataset.offset_of(row),
                        "a label that does not fit into int64", dataset.path());
  }
  return *value;
}

}  // namespace headrace
