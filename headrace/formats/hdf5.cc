// SPDX-License-Identifier: Apache-2.0
// HDF5 files as a source: the rows of their datasets, read through our own
// reader.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/formats/array_bytes.h"
#include "headrace/formats/classes.h"
#include "headrace/formats/fingerprint.h"
#include "headrace/formats/hdf5_fields.h"
#include "headrace/formats/hdf5_global_heap.h"
#include "headrace/formats/labeled_files.h"
#include "headrace/formats/shard_files.h"
#include "headrace/formats/wording.h"

namespace headrace {
namespace {

constexpr uint64_t kCacheBytes = uint64_t{64} << 20; // unpacked chunks
// Columns of numbers and of references to values are read at opening: 8 and 16
// bytes a record.
constexpr uint64_t kSmallRow = 16, kSmallColumn = uint64_t{256} << 20;
constexpr std::array<std::string_view, 3> kSuffixes = {".h5", ".hdf5", ".hdf"};
constexpr uint64_t kLastProbe = uint64_t{1}
                                << 20; // where a superblock is looked for

struct Column {
  std::unique_ptr<Hdf5Dataset> dataset;
  std::vector<uint8_t> rows;    // all of them, as the file has them; or none
  std::vector<int64_t> numbers; // of labels that are text
};

struct Input {
  std::unique_ptr<Hdf5File> file; // datasets refer to it
  std::vector<Column> columns;    // as many as there are fields
  int64_t first = 0, records = 0;
};

// Where a padded string of fixed length ends, as h5py sees it.
size_t length_of(std::span<const uint8_t> text, Hdf5Type::Padding padding) {
  if (padding == Hdf5Type::Padding::kNullTerminated) {
    return static_cast<size_t>(std::find(text.begin(), text.end(), 0) -
                               text.begin());
  }
  const uint8_t pad = padding == Hdf5Type::Padding::kSpacePadded ? ' ' : 0;
  size_t length = text.size();
  while (length > 0 && text[length - 1] == pad)
    --length;
  return length;
}

// REQUIRES: an integer type. Nothing: it does not fit.
std::optional<int64_t> integer_from(std::span<const uint8_t> raw, DType dtype,
                                    bool big_endian) {
  uint64_t value = 0;
  for (size_t i = 0; i < raw.size(); ++i) {
    value = value << 8 | raw[big_endian ? i : raw.size() - 1 - i];
  }
  const bool is_signed = dtype == DType::kInt8 || dtype == DType::kInt16 ||
                         dtype == DType::kInt32 || dtype == DType::kInt64;
  if (!is_signed) {
    if (value > static_cast<uint64_t>(INT64_MAX))
      return {};
    return static_cast<int64_t>(value);
  }
  const int unused = 64 - 8 * static_cast<int>(raw.size());
  return static_cast<int64_t>(value << unused) >> unused;
}

class Hdf5Source final : public Source {
public:
  Hdf5Source(std::string path, const std::vector<std::string> &files,
             const std::vector<std::string> *fields,
             std::optional<ClassList> classes)
      : path_(std::move(path)), cache_(kCacheBytes) {
    for (const std::string &file : files)
      add_file(file, fields);
    for (const Hdf5FieldPlan &plan : plans_)
      schema_.push_back(plan.field);
    name_classes(std::move(classes));
    make_fingerprint();
  }

  int64_t size() const override { return size_; }
  const Schema &schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kFiles; }
  std::vector<std::string> classes() const override { return classes_; }
  uint64_t fingerprint() const override { return fingerprint_; }

  std::string key(int64_t index) const override {
    const Input &input = input_of(index);
    return input.file->file().path() + ": " +
           std::to_string(index - input.first);
  }

  std::string description() const override {
    std::string out = "hdf5 " + path_ + " (" + counted(size_, "record");
    if (inputs_.size() > 1) {
      out += " in " + counted(static_cast<int64_t>(inputs_.size()), "file");
    }
    if (!classes_.empty()) {
      out += ", " +
             counted(static_cast<int64_t>(classes_.size()), "class", "classes");
    }
    out += "; ";
    for (size_t i = 0; i < std::min<size_t>(plans_.size(), 8); ++i) {
      out += (i ? ", " : "") + plans_[i].path;
    }
    return out + (plans_.size() > 8 ? ", ...)" : ")");
  }

  void read(std::span<const int64_t> indices, const std::vector<bool> &wanted,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      begin_record(indices[i], plans_.size(), 2 * plans_.size(), out[i]);
      const Input &input = input_of(indices[i]);
      const auto row = static_cast<uint64_t>(indices[i] - input.first);
      for (size_t field = 0; field < plans_.size() && out[i].result; ++field) {
        if (wanted[field])
          out[i].result = read_field(input, field, row, out[i]);
      }
      if (out[i].result)
        continue;
      Where &where = out[i].result.error().where;
      where.record = indices[i];
    }
  }

  std::vector<int64_t> integer_column(std::string_view name) const override {
    std::vector<int64_t> values;
    for (size_t field = 0; field < plans_.size(); ++field) {
      if (schema_[field].name != name ||
          schema_[field].dtype != DType::kInt64 ||
          !schema_[field].shape.empty()) {
        continue;
      }
      values.reserve(static_cast<size_t>(size_));
      for (const Input &input : inputs_) {
        for (int64_t row = 0; row < input.records; ++row) {
          Result<int64_t> value =
              integer(input, field, static_cast<uint64_t>(row));
          if (!value) {
            value.error().where.record = input.first + row;
            throw Exception(std::move(value.error()));
          }
          values.push_back(*value);
        }
      }
    }
    return values;
  }

private:
  const Input &input_of(int64_t index) const {
    const auto after = std::upper_bound(
        inputs_.begin(), inputs_.end(), index,
        [](int64_t i, const Input &it) { return i < it.first; });
    return *(after - 1);
  }

  // --- Opening ---

  void add_file(const std::string &path,
                const std::vector<std::string> *fields) {
    Input input;
    input.file = std::make_unique<Hdf5File>(Hdf5File::open(path));
    const Hdf5File &file = *input.file;
    std::vector<std::string>
        same; // datasets of the first file, for the ones behind it
    for (const Hdf5FieldPlan &plan : plans_)
      same.push_back(plan.path);
    const std::vector<Hdf5Choice> choices =
        choose_hdf5_datasets(file, inputs_.empty() ? fields : &same);
    std::vector<std::unique_ptr<Hdf5Dataset>> datasets;
    for (const Hdf5Choice &choice : choices) {
      datasets.push_back(
          std::make_unique<Hdf5Dataset>(file, choice.outline, cache_));
    }
    if (inputs_.empty())
      plans_ = plan_hdf5_fields(file, choices, datasets);
    for (size_t i = 0; i < datasets.size(); ++i) {
      check_same(file, plans_[i], *datasets[i]);
      input.columns.push_back({std::move(datasets[i]), {}, {}});
    }
    input.first = size_;
    input.records = static_cast<int64_t>(input.columns[0].dataset->rows());
    size_ += input.records;
    for (size_t i = 0; i < plans_.size(); ++i)
      load(input, i);
    inputs_.push_back(std::move(input));
  }

  static void check_same(const Hdf5File &file, const Hdf5FieldPlan &plan,
                         const Hdf5Dataset &dataset) {
    const Hdf5Type &type = dataset.type();
    const bool texts =
        type.what == Hdf5Type::Class::kText && plan.form == Hdf5Form::kText;
    if (type.what == plan.type.what && type.dtype == plan.type.dtype &&
        dataset.row_shape() == plan.row_shape &&
        type.names == plan.type.names &&
        (texts || type.bytes == plan.type.bytes)) {
      return;
    }
    hdf5_fields_do_not_fit(
        file, "it is of another type or shape than in the first file",
        "open files of one kind together", dataset.path());
  }

  void load(Input &input, size_t field) {
    Column &column = input.columns[field];
    const Hdf5Dataset &dataset = *column.dataset;
    const uint64_t bytes = dataset.row_bytes() * dataset.rows();
    if (dataset.row_bytes() > kSmallRow || bytes > kSmallColumn - loaded_)
      return;
    std::vector<uint8_t> rows(bytes);
    // A column that cannot be read is an error of its records, not of the file.
    if (!dataset.read(0, dataset.rows(), rows))
      return;
    column.rows = std::move(rows);
    loaded_ += bytes;
  }

  // Labels that are text become the numbers of classes; those of an enumeration
  // have names.
  void name_classes(std::optional<ClassList> given) {
    size_t field = 0;
    while (field < plans_.size() &&
           plans_[field].field.kind != FieldKind::kLabel)
      ++field;
    if (field == plans_.size()) {
      if (given) {
        hdf5_fields_do_not_fit(
            *inputs_[0].file, "classes= is given, and no field is a label",
            "name the dataset of labels: fields=[..., 'label=/path']");
      }
      return;
    }
    if (plans_[field].text_label) {
      name_texts(field, std::move(given));
      return;
    }
    const std::vector<std::string> &names = plans_[field].type.names;
    if (!given) {
      classes_ = names;
      return;
    }
    std::vector<std::string> unknown;
    if (!names.empty()) {
      for (const std::string &name : names) {
        renamed_.push_back(given->number(name).value_or(-1));
        if (renamed_.back() < 0)
          unknown.push_back(name);
      }
    } else {
      for (int64_t label : integer_column(plans_[field].field.name)) {
        if (label < 0 || label >= given->size())
          unknown.push_back(std::to_string(label));
      }
      unknown = ClassList::found(std::move(unknown)).names();
    }
    given->refuse_unknown(unknown, "in " + path_);
    classes_ = given->names();
  }

  void name_texts(size_t field, std::optional<ClassList> given) {
    std::vector<std::vector<std::string>> labels;
    std::vector<std::string> all;
    RecordData record;
    begin_record(0, plans_.size(), 2 * plans_.size(), record);
    for (const Input &input : inputs_) {
      labels.emplace_back();
      for (int64_t row = 0; row < input.records; ++row) {
        if (Result<void> read =
                read_text(input, field, static_cast<uint64_t>(row), record);
            !read) {
          read.error().where.record = input.first + row;
          throw Exception(std::move(read.error()));
        }
        const std::span<const uint8_t> text = record.fields[field].bytes;
        labels.back().emplace_back(text.begin(), text.end());
        if (all.empty() || all.back() != labels.back().back())
          all.push_back(labels.back().back());
      }
    }
    const ClassList found = ClassList::found(std::move(all));
    const ClassList &classes = given ? *given : found;
    std::vector<std::string> unknown;
    for (const std::string &name : found.names()) {
      if (!classes.number(name))
        unknown.push_back(name);
    }
    classes.refuse_unknown(unknown, "in " + path_);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Column &column = inputs_[i].columns[field];
      for (const std::string &name : labels[i])
        column.numbers.push_back(*classes.number(name));
      column.rows.clear();
      column.rows.shrink_to_fit();
    }
    classes_ = classes.names();
  }

  void make_fingerprint() {
    Fingerprint print;
    print.add("hdf5");
    print.add(static_cast<uint64_t>(size_));
    for (const Field &field : schema_) {
      print.add(field.name);
      print.add(static_cast<uint64_t>(field.kind));
      print.add(name_of(field.dtype));
      for (int64_t size : field.shape)
        print.add(static_cast<uint64_t>(size));
    }
    for (const std::string &name : classes_)
      print.add(name);
    for (const Input &input : inputs_) {
      print.add(input.file->file().size());
      for (const Column &column : input.columns) {
        column.dataset->add_to(print);
        print.add(
            std::string_view(reinterpret_cast<const char *>(column.rows.data()),
                             column.rows.size()));
        for (int64_t number : column.numbers)
          print.add(static_cast<uint64_t>(number));
      }
    }
    fingerprint_ = print.value();
  }

  // --- Reading ---

  static Result<void> check_size(const Input &input, const Hdf5Dataset &dataset,
                                 uint64_t bytes, size_t most) {
    if (bytes <= most && dataset.packed_bytes() <= most)
      return {};
    const bool chunk = bytes <= most;
    return hdf5_too_large(
        input.file->file(),
        (chunk ? "its chunk has " : "the record has ") +
            grouped(
                static_cast<int64_t>(chunk ? dataset.packed_bytes() : bytes)) +
            " bytes, the cap is " + grouped(static_cast<int64_t>(most)),
        chunk ? "raise memory_limit, or write the file with smaller chunks"
              : "raise memory_limit, or leave the record out",
        dataset.path());
  }

  // The row as the file has it: from memory, or read into `buffer`.
  Result<std::span<const uint8_t>> row_of(const Input &input, size_t field,
                                          uint64_t row, size_t most,
                                          Buffer &buffer) const {
    const Column &column = input.columns[field];
    const uint64_t bytes = column.dataset->row_bytes();
    if (!column.rows.empty())
      return std::span(column.rows).subspan(row * bytes, bytes);
    if (Result<void> fits = check_size(input, *column.dataset, bytes, most);
        !fits) {
      return std::move(fits.error());
    }
    buffer.resize(bytes);
    if (Result<void> read =
            column.dataset->read(row, 1, {buffer.data(), bytes});
        !read) {
      return std::move(read.error());
    }
    return buffer.bytes();
  }

  Result<void> read_field(const Input &input, size_t field, uint64_t row,
                          RecordData &out) const {
    const Hdf5FieldPlan &plan = plans_[field];
    FieldData &data = out.fields[field];
    if (plan.field.dtype == DType::kInt64 && plan.field.shape.empty() &&
        (plan.form == Hdf5Form::kScalar || plan.text_label ||
         plan.field.kind == FieldKind::kLabel)) {
      Result<int64_t> value = integer(input, field, row);
      if (!value)
        return std::move(value.error());
      data.scalar = *value;
      return {};
    }
    switch (plan.form) {
    case Hdf5Form::kNumbers:
      return read_numbers(input, field, row, out);
    case Hdf5Form::kText:
    case Hdf5Form::kString:
      return read_text(input, field, row, out);
    case Hdf5Form::kSequence:
      return read_sequence(input, field, row, out);
    case Hdf5Form::kBytes:
    case Hdf5Form::kScalar: {
      Result<std::span<const uint8_t>> bytes =
          row_of(input, field, row, out.max_bytes, out.owned[2 * field]);
      if (!bytes)
        return std::move(bytes.error());
      data.bytes = *bytes;
    }
    }
    return {};
  }

  Result<void> read_numbers(const Input &input, size_t field, uint64_t row,
                            RecordData &out) const {
    const Hdf5FieldPlan &plan = plans_[field];
    Buffer &buffer = out.owned[2 * field], &moved = out.owned[2 * field + 1];
    Result<std::span<const uint8_t>> raw =
        row_of(input, field, row, out.max_bytes, buffer);
    if (!raw)
      return std::move(raw.error());
    if (raw->data() != buffer.data()) { // of a small column in memory
      buffer.resize(raw->size());
      std::memcpy(buffer.data(), raw->data(), raw->size());
    }
    const std::span<uint8_t> bytes(buffer.data(), buffer.size());
    make_native(bytes, plan.type.dtype, plan.type.big_endian);
    out.fields[field].bytes = bytes;
    if (!plan.channels_last)
      return {};
    moved.resize(bytes.size());
    move_channels_first(bytes.data(), plan.field.shape,
                        size_of(plan.type.dtype), moved.data());
    out.fields[field].bytes = moved.bytes();
    return {};
  }

  Result<void> read_text(const Input &input, size_t field, uint64_t row,
                         RecordData &out) const {
    const Column &column = input.columns[field];
    Buffer &buffer = out.owned[2 * field];
    Result<std::span<const uint8_t>> raw =
        row_of(input, field, row, out.max_bytes, buffer);
    if (!raw)
      return std::move(raw.error());
    std::span<const uint8_t> &text = out.fields[field].bytes;
    if (column.dataset->type().what == Hdf5Type::Class::kText) {
      text = raw->first(length_of(*raw, column.dataset->type().padding));
      return {};
    }
    Result<std::span<uint8_t>> value = read_value(
        input, field, *raw, 1, out.max_bytes, out.owned[2 * field + 1]);
    if (!value)
      return std::move(value.error());
    text = value->first(static_cast<size_t>(
        std::find(value->begin(), value->end(), 0) - value->begin()));
    return {};
  }

  Result<void> read_sequence(const Input &input, size_t field, uint64_t row,
                             RecordData &out) const {
    const Hdf5FieldPlan &plan = plans_[field];
    Result<std::span<const uint8_t>> raw =
        row_of(input, field, row, out.max_bytes, out.owned[2 * field]);
    if (!raw)
      return std::move(raw.error());
    const size_t number_bytes = size_of(plan.type.dtype);
    Result<std::span<uint8_t>> value =
        read_value(input, field, *raw, number_bytes, out.max_bytes,
                   out.owned[2 * field + 1]);
    if (!value)
      return std::move(value.error());
    make_native(*value, plan.type.dtype, plan.type.big_endian);
    FieldData &data = out.fields[field];
    data.bytes = *value;
    if (plan.field.kind == FieldKind::kTensor) {
      data.shape = {static_cast<int64_t>(value->size() / number_bytes)};
    }
    return {};
  }

  static Result<std::span<uint8_t>> read_value(const Input &input, size_t field,
                                               std::span<const uint8_t> element,
                                               size_t number_bytes, size_t most,
                                               Buffer &buffer) {
    const Hdf5Dataset &dataset = *input.columns[field].dataset;
    const Hdf5Reference reference = hdf5_reference(*input.file, element);
    if (reference.is_empty()) {
      buffer.resize(0);
      return std::span<uint8_t>(buffer.data(), 0);
    }
    const uint64_t bytes = uint64_t{reference.count} * number_bytes;
    if (Result<void> fits = check_size(input, dataset, bytes, most); !fits) {
      return std::move(fits.error());
    }
    Result<std::span<uint8_t>> value =
        read_hdf5_value(*input.file, reference, bytes, buffer);
    if (!value)
      value.error().where.member = dataset.path();
    return value;
  }

  Result<int64_t> integer(const Input &input, size_t field,
                          uint64_t row) const {
    const Column &column = input.columns[field];
    if (!column.numbers.empty())
      return column.numbers[row];
    std::array<uint8_t, 8> memory;
    const Hdf5Dataset &dataset = *column.dataset;
    std::span<const uint8_t> raw = std::span(memory).first(dataset.row_bytes());
    if (!column.rows.empty()) {
      raw = std::span(column.rows).subspan(row * raw.size(), raw.size());
    } else if (Result<void> read =
                   dataset.read(row, 1, std::span(memory).first(raw.size()));
               !read) {
      return std::move(read.error());
    }
    const std::optional<int64_t> value =
        integer_from(raw, dataset.type().dtype, dataset.type().big_endian);
    if (!value) {
      return hdf5_damaged(input.file->file(), dataset.offset_of(row),
                          "a label that does not fit into int64",
                          dataset.path());
    }
    const bool renamed = plans_[field].field.kind == FieldKind::kLabel &&
                         *value >= 0 &&
                         *value < static_cast<int64_t>(renamed_.size());
    return renamed ? renamed_[static_cast<size_t>(*value)] : *value;
  }

  std::string path_;
  mutable Hdf5ChunkCache cache_;
  std::vector<Hdf5FieldPlan> plans_;
  Schema schema_;
  std::vector<Input> inputs_;
  std::vector<std::string> classes_;
  std::vector<int64_t>
      renamed_; // an enumeration's number -> the class's; empty: the same
  int64_t size_ = 0;
  uint64_t loaded_ = 0; // bytes of columns in memory
  uint64_t fingerprint_ = 0;
};

bool is_hdf5_file(const std::string &path) {
  Result<File> file = File::open(path);
  uint64_t offset = 0;
  return file && find_hdf5_signature(*file, kLastProbe, offset);
}

bool is_hdf5(const std::string &path) {
  const std::vector<std::string_view> suffixes(kSuffixes.begin(),
                                               kSuffixes.end());
  return is_hdf5_file(path) || is_shard_folder(path, suffixes);
}

SourcePtr open_hdf5(const std::string &path, const Arguments &arguments,
                    const Progress &) {
  const std::vector<std::string> files = shard_files(
      path, std::vector<std::string_view>(kSuffixes.begin(), kSuffixes.end()));
  const std::vector<std::string> *fields =
      arguments.is_none("fields") ? nullptr : &arguments.texts("fields");
  return std::make_shared<Hdf5Source>(path, files, fields,
                                      classes_argument(arguments));
}

const FormatRecord kHdf5{
    .name = "hdf5",
    .doc = "Datasets of an HDF5 file (.h5, .hdf5), or of several, as fields: "
           "the first dimension is "
           "the record. Read by Headrace itself, not by libhdf5: contiguous, "
           "compact and chunked data, "
           "with deflate, shuffle, fletcher32 and lzf. uint8 arrays named "
           "image, images or x are "
           "pictures, integers or strings named label, labels, target or y are "
           "labels, sequences of "
           "bytes that hold encoded pictures are decoded. What leads to other "
           "files is refused.",
    .example = "hr.open(\"train.h5\", fields=[\"image=/train/x\", "
               "\"label=/train/y\"])",
    .params =
        {{.name = "fields",
          .type = ParamType::kStrings,
          .doc = "The datasets, as \"/path\" or \"name=/path\". None: all that "
                 "have as many "
                 "rows as most of them, named by the last part of their path."},
         classes_param()},
    .recognizes = is_hdf5,
    .open = open_hdf5,
    .shards = true};
const Register<FormatRecord> registered(kHdf5);

} // namespace
} // namespace headrace
