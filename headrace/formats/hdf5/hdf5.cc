// SPDX-License-Identifier: Apache-2.0
// HDF5 files as a source: the rows of their datasets, read through our own
// reader.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/format.h"
#include "headrace/formats/hdf5/hdf5_input.h"
#include "headrace/formats/python/python_formats.h"
#include "headrace/formats/shards/shard_files.h"
#include "headrace/sources/classes.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

constexpr uint64_t kCacheBytes = uint64_t{64} << 20;  // decompressed chunks
constexpr std::array<std::string_view, 3> kSuffixes = {".h5", ".hdf5", ".hdf"};
constexpr uint64_t kClassBytes = 128;  // overhead per class name
constexpr std::string_view kLabels = "the labels of its rows";
constexpr uint64_t kLastProbe = uint64_t{1} << 20;  // offsets where a superblock may be

class Hdf5Source final : public Source {
 public:
  Hdf5Source(std::string path, const std::vector<std::string>& files,
             const std::vector<std::string>* fields, std::optional<ClassList> classes,
             OpenBudget& budget)
      : path_(std::move(path)), cache_(kCacheBytes) {
    for (const std::string& file : files) add_file(file, fields, budget);
    for (const Hdf5FieldPlan& plan : plans_) schema_.push_back(plan.field);
    name_classes(std::move(classes), budget);
    make_fingerprint();
    for (Hdf5Input& input : inputs_) input.opened();
  }

  int64_t size() const override { return size_; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kFiles; }
  std::vector<std::string> classes() const override { return classes_; }
  uint64_t fingerprint() const override { return fingerprint_; }

  std::string key(int64_t index) const override {
    const auto [input, row] = place_of(index);
    return input.file().file().path() + ": " + std::to_string(row);
  }

  std::string description() const override {
    std::string out = "hdf5 " + path_ + " (" + count_text(size_, "record");
    if (inputs_.size() > 1) {
      out += " in " + count_text(static_cast<int64_t>(inputs_.size()), "file");
    }
    if (!classes_.empty()) {
      out += ", " + count_text(static_cast<int64_t>(classes_.size()), "class", "classes");
    }
    out += "; ";
    for (size_t i = 0; i < std::min<size_t>(plans_.size(), 8); ++i) {
      out += (i ? ", " : "") + plans_[i].path;
    }
    return out + (plans_.size() > 8 ? ", ...)" : ")");
  }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    std::vector<Hdf5Place> places(plans_.size());
    for (size_t i = 0; i < out.size(); ++i) {
      begin_record(indices[i], plans_.size(), 2 * plans_.size(), out[i]);
      const auto [input, row] = place_of(indices[i]);
      for (size_t field = 0; field < plans_.size() && out[i].result; ++field) {
        if (wanted[field]) out[i].result = read_field(input, field, row, out[i], places[field]);
      }
      if (!out[i].result) out[i].result.error().where.record = indices[i];
    }
  }

  std::vector<int64_t> integer_column(std::string_view name) const override {
    std::vector<int64_t> values;
    for (size_t field = 0; field < plans_.size(); ++field) {
      if (schema_[field].name != name || !is_scalar(field)) continue;
      values.reserve(static_cast<size_t>(size_));
      for (int64_t record = 0; record < size_; ++record) {
        values.push_back(good_integer(field, record).value_or(-1));
      }
    }
    return values;
  }

 private:
  struct Place {
    const Hdf5Input& input;
    uint64_t row;
  };
  Place place_of(int64_t index) const {
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), index);
    const size_t file = static_cast<size_t>(after - begins_.begin()) - 1;
    return {inputs_[file], static_cast<uint64_t>(index - begins_[file])};
  }

  // --- Opening ---

  void add_file(const std::string& path, const std::vector<std::string>* fields,
                OpenBudget& budget) {
    std::vector<std::string> same;  // the first file's datasets, for the others
    for (const Hdf5FieldPlan& plan : plans_) same.push_back(plan.path);
    inputs_.emplace_back(path, inputs_.empty() ? fields : &same, plans_, cache_, loaded_, budget);
    begins_.push_back(size_);
    size_ += inputs_.back().records();
  }

  // Text labels become class indices; those of an enumeration already have names.
  void name_classes(std::optional<ClassList> given, OpenBudget& budget) {
    size_t field = 0;
    while (field < plans_.size() && plans_[field].field.kind != FieldKind::kLabel) ++field;
    if (field == plans_.size()) {
      if (given) {
        hdf5_fields_do_not_fit(inputs_[0].file(), "classes= is given, but no field is a label",
                               "name the dataset of labels: fields=[..., 'label=/path']");
      }
      return;
    }
    if (plans_[field].text_label) {
      name_texts(field, std::move(given), budget);
      return;
    }
    const std::vector<std::string>& names = plans_[field].type.names;
    if (!given) {
      classes_ = names;
      return;
    }
    std::vector<std::string> unknown;
    if (!names.empty()) {
      for (const std::string& name : names) {
        renamed_.push_back(given->number(name).value_or(-1));
        if (renamed_.back() < 0) unknown.push_back(name);
      }
    } else {
      std::set<int64_t> others;
      for (int64_t record = 0; record < size_; ++record) {
        budget.step(1, kLabels);
        const int64_t label = good_integer(field, record).value_or(0);
        if (label < 0 || label >= given->size()) others.insert(label);
      }
      for (const int64_t label : others) unknown.push_back(std::to_string(label));
      unknown = ClassList::found(std::move(unknown)).names();
    }
    given->refuse_unknown(unknown, "in " + path_);
    classes_ = given->names();
  }

  // Labels are first numbered by appearance, then renumbered by class.
  void name_texts(size_t field, std::optional<ClassList> given, OpenBudget& budget) {
    budget.spend(static_cast<uint64_t>(size_) * sizeof(int64_t), kLabels);
    std::unordered_map<std::string, int64_t> numbers;
    std::vector<std::vector<int64_t>> labels(inputs_.size());
    RecordData data;
    Hdf5Place place;
    begin_record(0, plans_.size(), 2 * plans_.size(), data);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      for (int64_t row = 0; row < inputs_[i].records(); ++row) {
        const auto at = static_cast<uint64_t>(row);
        if (Result<void> read = inputs_[i].read_text(field, at, data, place); !read) {
          read.error().where.record = begins_[i] + row;
          throw Exception(std::move(read.error()));
        }
        const std::span<const uint8_t> text = data.fields[field].bytes;
        budget.step(1 + text.size() / 64, kLabels);
        const auto [label, is_new] =
            numbers.emplace(std::string(text.begin(), text.end()), int64_t(numbers.size()));
        if (is_new) budget.spend(kClassBytes + text.size(), kLabels);
        labels[i].push_back(label->second);
      }
    }
    std::vector<std::string> names;
    for (const auto& [name, number] : numbers) names.push_back(name);
    const ClassList found = ClassList::found(std::move(names));
    const ClassList& classes = given ? *given : found;
    std::vector<std::string> unknown;
    for (const std::string& name : found.names()) {
      if (!classes.number(name)) unknown.push_back(name);
    }
    classes.refuse_unknown(unknown, "in " + path_);
    std::vector<int64_t> classes_of(numbers.size());
    for (const auto& [name, number] : numbers) classes_of[size_t(number)] = *classes.number(name);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      for (int64_t& label : labels[i]) label = classes_of[static_cast<size_t>(label)];
      inputs_[i].replace(field, std::move(labels[i]));
    }
    classes_ = classes.names();
  }

  void make_fingerprint() {
    Fingerprint print;
    print.add("hdf5");
    print.add(static_cast<uint64_t>(size_));
    for (const Field& field : schema_) {
      print.add(field.name);
      print.add(static_cast<uint64_t>(field.kind));
      print.add(name_of(field.dtype));
      for (int64_t size : field.shape) print.add(static_cast<uint64_t>(size));
    }
    for (const std::string& name : classes_) print.add(name);
    for (const Hdf5Input& input : inputs_) input.add_to(print);
    fingerprint_ = print.value();
  }

  // --- Reading ---

  // Whether the value is delivered as a single integer.
  bool is_scalar(size_t field) const {
    const Field& declared = schema_[field];
    return declared.dtype == DType::kInt64 && declared.shape.empty() &&
           (plans_[field].form == Hdf5Form::kScalar || declared.kind == FieldKind::kLabel);
  }

  Result<void> read_field(const Hdf5Input& input, size_t field, uint64_t row, RecordData& out,
                          Hdf5Place& place) const {
    const Hdf5FieldPlan& plan = plans_[field];
    if (is_scalar(field)) {
      Result<int64_t> value = integer(input, field, row);
      if (!value) return std::move(value.error());
      out.fields[field].scalar = *value;
      return {};
    }
    switch (plan.form) {
      case Hdf5Form::kNumbers:
        return input.read_numbers(plan, field, row, out);
      case Hdf5Form::kText:
      case Hdf5Form::kString:
        return input.read_text(field, row, out, place);
      case Hdf5Form::kSequence:
        return input.read_sequence(plan, field, row, out, place);
      case Hdf5Form::kBytes:
      case Hdf5Form::kScalar:
        break;
    }
    return input.read_bytes(field, row, out);
  }

  Result<int64_t> integer(const Hdf5Input& input, size_t field, uint64_t row) const {
    Result<int64_t> value = input.integer(field, row);
    const bool renamed = value && plans_[field].field.kind == FieldKind::kLabel && *value >= 0 &&
                         *value < static_cast<int64_t>(renamed_.size());
    if (renamed) return renamed_[static_cast<size_t>(*value)];
    return value;
  }

  // None for a bad record. Throws Exception: storage errors.
  std::optional<int64_t> good_integer(size_t field, int64_t record) const {
    const auto [input, row] = place_of(record);
    Result<int64_t> value = integer(input, field, row);
    if (value) return *value;
    if (value.error().code->kind != ErrorKind::kStorage) return {};
    value.error().where.record = record;
    throw Exception(std::move(value.error()));
  }

  std::string path_;
  mutable Hdf5ChunkCache cache_;
  std::vector<Hdf5FieldPlan> plans_;
  Schema schema_;
  std::vector<Hdf5Input> inputs_;
  std::vector<int64_t> begins_;  // first record of each file
  std::vector<std::string> classes_;
  std::vector<int64_t> renamed_;  // an enumeration's number -> the class's; empty: the same
  int64_t size_ = 0;
  uint64_t loaded_ = 0;  // bytes of columns in memory
  uint64_t fingerprint_ = 0;
};

// If each probe is a round trip, files without a known suffix are only probed near their start.
bool is_hdf5_file(const std::string& path) {
  constexpr uint64_t kNearProbe = 2048;
  Result<File> file = File::open(path);
  uint64_t offset = 0;
  const bool near = file && file->is_async() && !has_one_suffix(path, kSuffixes);
  return file && find_hdf5_signature(*file, near ? kNearProbe : kLastProbe, offset);
}

bool is_hdf5(const std::string& path) {
  const std::vector<std::string_view> suffixes(kSuffixes.begin(), kSuffixes.end());
  return is_hdf5_file(path) || is_shard_folder(path, suffixes);
}

uint64_t bytes_of(const std::vector<std::string>& files) {
  uint64_t bytes = 0;
  for (const std::string& file : files) {
    const Result<FileIdentity> identity = identity_of(file);
    if (identity) bytes += identity->size;
  }
  return bytes;
}

SourcePtr open_hdf5(const std::string& path, const Arguments& arguments, const Progress& progress) {
  const std::vector<std::string> files =
      shard_files(path, std::vector<std::string_view>(kSuffixes.begin(), kSuffixes.end()));
  const std::vector<std::string>* fields =
      arguments.is_none("fields") ? nullptr : &arguments.texts("fields");
  OpenBudget budget(path, bytes_of(files), &progress);
  try {
    return std::make_shared<Hdf5Source>(path, files, fields, classes_argument(arguments), budget);
  } catch (const Exception& exception) {
    const std::string_view code = exception.error().code->id;
    // Not for HR0494: links to other files stay rejected.
    if (!arguments.flag("trusted") || (code != "HR0490" && code != "HR0493")) throw;
  }
  std::map<std::string, ParamValue> given;
  if (fields) given["fields"] = *fields;
  if (!arguments.is_none("classes")) given["classes"] = arguments.texts("classes");
  return open_in_python("hdf5", files, given);
}

const FormatRecord kHdf5{
    .name = "hdf5",
    .doc =
        "Datasets of an HDF5 file (.h5, .hdf5), or of several, as fields; records are indexed by "
        "the first dimension. Read by Headrace itself, not by libhdf5: contiguous, compact and "
        "chunked data, with deflate, shuffle, fletcher32 and lzf. uint8 arrays named image, images "
        "or x are images; integers or strings named label, labels, target or y are labels; "
        "sequences of bytes that hold encoded images are decoded. Links to other files are "
        "rejected.",
    .example = "hr.open(\"train.h5\", fields=[\"image=/train/x\", \"label=/train/y\"])",
    .params =
        {{.name = "fields",
          .type = ParamType::kStrings,
          .doc = "The datasets to read, each as \"/path\" or \"name=/path\". None: all datasets "
                 "with the most common number of rows, named after the last part of their path."},
         classes_param(),
         {.name = "trusted",
          .type = ParamType::kBool,
          .doc = "Whether to read datasets that Headrace's own reader does not support through "
                 "h5py, row by row. libhdf5 is not safe on untrusted files.",
          .fallback = false}},
    .recognizes = is_hdf5,
    .open = open_hdf5,
    .shards = true};
const Register<FormatRecord> registered_hdf5_format(kHdf5);

}  // namespace
}  // namespace headrace
