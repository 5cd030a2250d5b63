// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/manifest/manifest_columns.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>
#include <set>

#include "headrace/base/json_reader.h"
#include "headrace/base/text.h"
#include "headrace/fields/media.h"
#include "headrace/sources/readable_text.h"

namespace headrace {

const ErrorCode kBadManifest{
    "HR0437", ErrorKind::kData, "malformed manifest",
    "A manifest is a CSV file with a header and the same number of cells in every line, or a JSON "
    "Lines file: one object per line, all with the same keys. The message gives the first line "
    "that is invalid."};
const ErrorCode kBadManifestValue{
    "HR0438", ErrorKind::kData, "invalid value in a manifest",
    "Each column of a manifest contains one type of value: paths, labels, numbers or text. The "
    "message gives the line with a different type, or an empty value. missing=\"fill\" reads "
    "absent numbers as NaN and absent text as empty; paths and labels are always required."};

namespace {

const ErrorCode kManifestColumns{
    "HR0439", ErrorKind::kConfig, "manifest columns do not match",
    "image=, label= and fields= name columns of the manifest by its header. Each column becomes a "
    "field, so two columns cannot have the same name."};

constexpr size_t kLongestPath = 4096;

// Makes a field name from a heading: "Age (years)" -> Age_years.
std::string word_from(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || byte >= 128) {
      out += c;
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
  }
  while (out.size() > 1 && out.ends_with('_')) out.pop_back();
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out.insert(0, "_");
  if (out == "id" || out == "key" || out == "valid") out += '_';  // reserved by every source
  return out;
}

class ManifestMaker {
 public:
  ManifestMaker(ManifestTable table, ManifestOptions options, const File& file)
      : table_(std::move(table)), options_(std::move(options)), file_(file) {}

  std::vector<ManifestField> make() {
    if (table_.lines.empty()) {
      bad_manifest_line(file_, 1, "no record after the header", "write one line per record");
    }
    find_paths();
    find_label();
    if (image_ >= 0) add_path(image_, "image", FieldKind::kImage);
    if (label_ >= 0) add_label();
    const std::vector<int64_t> images = columns_of(*media_of(FieldKind::kImage));
    const int64_t masks =
        std::ranges::count_if(images, [&](int64_t i) { return i != image_ && is_mask(i); });
    for (const int64_t i : chosen()) {
      if (i == image_ || i == label_) continue;
      const std::string name = word_from(table_.columns[i].name);
      const MediaRecord* const media = media_[i];
      if (!media) {
        add_values(table_.columns[i], name);
      } else if (media->kind == FieldKind::kImage) {
        const bool mask = is_mask(i);
        add_path(i, mask && masks == 1 ? "mask" : name, mask ? FieldKind::kMask : media->kind);
      } else {
        const bool only = columns_of(*media).size() == 1;
        add_path(i, only ? std::string(media->name) : name, media->kind);
      }
    }
    check_names();
    return std::move(out_);
  }

 private:
  int64_t find(const std::string& name, const char* parameter) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < table_.columns.size(); ++i) {
      if (table_.columns[i].name == name) return static_cast<int64_t>(i);
      names.push_back(table_.columns[i].name);
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string_view near = nearest_name(name, views);
    raise(kManifestColumns,
          std::string(parameter) + "\"" + name + "\" is not a column of " + file_.path(),
          near.empty() ? "the columns are " + quoted_list(names, 20)
                       : "did you mean \"" + std::string(near) + "\"?");
  }

  // The record's only audio or video is always included, like its image, whatever fields= contains.
  std::vector<int64_t> chosen() const {
    std::vector<int64_t> out;
    if (options_.fields) {
      for (const MediaRecord* media : all_media()) {
        const std::vector<int64_t> columns = columns_of(*media);
        if (media->kind != FieldKind::kImage && columns.size() == 1) out.push_back(columns[0]);
      }
      for (const std::string& name : *options_.fields) {
        const int64_t column = find(name, "fields=");
        if (std::ranges::find(out, column) == out.end()) out.push_back(column);
      }
    } else {
      for (size_t i = 0; i < table_.columns.size(); ++i) out.push_back(static_cast<int64_t>(i));
    }
    return out;
  }

  std::vector<int64_t> columns_of(const MediaRecord& media) const {
    std::vector<int64_t> out;
    for (size_t i = 0; i < media_.size(); ++i) {
      if (media_[i] == &media) out.push_back(static_cast<int64_t>(i));
    }
    return out;
  }

  bool is_mask(int64_t i) const {
    return lower_case(table_.columns[i].name).find("mask") != std::string::npos;
  }

  // Columns whose values are all paths of one media type, and the image column.
  void find_paths() {
    for (size_t i = 0; i < table_.columns.size(); ++i) {
      const ManifestColumn& column = table_.columns[i];
      const auto all_are = [&](const MediaRecord* media) {
        bool all = !column.has_number && !column.has_bool;
        for (int64_t r = 0; r < column.values.size() && all; ++r) {
          all = has_suffix_of(media->kind, column.values[r]);
        }
        return all;
      };
      const auto found = std::ranges::find_if(all_media(), all_are);
      media_.push_back(found == all_media().end() ? nullptr : *found);
    }
    const std::vector<int64_t> images = columns_of(*media_of(FieldKind::kImage));
    const auto first = std::ranges::find_if(images, [&](int64_t i) { return !is_mask(i); });
    if (options_.image) {
      image_ = find(*options_.image, "image=");
    } else if (first != images.end()) {
      image_ = *first;
    }
  }

  void find_label() {
    if (options_.label) {
      label_ = find(*options_.label, "label=");
      if (label_ == image_) {
        raise(kManifestColumns,
              "label= and image= name the same column, \"" + *options_.label + "\"");
      }
      return;
    }
    for (const std::string_view name : kLabelHeadings) {
      for (size_t i = 0; i < table_.columns.size() && label_ < 0; ++i) {
        const ManifestColumn& column = table_.columns[i];
        if (lower_case(column.name) != name || int64_t(i) == image_) continue;
        if (form_of(column) == ManifestField::Form::kNumber) continue;  // a regression target
        if (media_[i] && media_[i]->kind == FieldKind::kImage) continue;
        label_ = static_cast<int64_t>(i);
      }
    }
  }

  [[noreturn]] void bad_value(const ManifestColumn& column, int64_t record, const std::string& what,
                              std::string hint = {}) const {
    throw Exception(Error{.code = &kBadManifestValue,
                          .what = "line " + std::to_string(table_.lines[record]) + ", column \"" +
                                  column.name + "\": " + what,
                          .where = Where{.file = file_.path()},
                          .hint = std::move(hint)});
  }

  void refuse_missing(const ManifestColumn& column, const std::string& hint) const {
    if (!column.missing.empty()) bad_value(column, column.missing[0], "no value", hint);
  }

  void add_path(int64_t i, const std::string& name, FieldKind kind) {
    ManifestColumn& column = table_.columns[i];
    refuse_missing(column, "each record needs its path");
    for (int64_t r = 0; r < column.values.size(); ++r) {
      const std::string_view path = column.values[r];
      if (path.size() >= kLongestPath || path.find('\0') != path.npos) {
        bad_value(column, r, "an invalid path");
      }
    }
    ManifestField out;
    out.form = ManifestField::Form::kFile;
    out.field = {.name = name, .kind = FieldKind::kBytes};
    record_of(kind).take(out.field);
    out.names = std::move(column.values);
    out.names.shrink();
    out_.push_back(std::move(out));
  }

  void add_label() {
    ManifestColumn& column = table_.columns[label_];
    refuse_missing(column, "each record needs its label");
    ManifestField out;
    out.form = ManifestField::Form::kInteger;
    out.field = {.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64};
    const bool numbers = form_of(column) == ManifestField::Form::kInteger;
    if (form_of(column) == ManifestField::Form::kNumber) {
      raise(kManifestColumns,
            "label=\"" + column.name + "\" contains fractions, but labels are classes",
            "omit label=; the column then becomes a field under its own name");
    }
    if (numbers && !options_.classes) {
      out.integers = integers_of(column);
    } else {
      number_by_classes(column, out);
    }
    column.values = {};
    out_.push_back(std::move(out));
  }

  void number_by_classes(const ManifestColumn& column, ManifestField& out) const {
    const int64_t count = column.values.size();
    if (options_.classes) {
      out.classes = *options_.classes;
    } else {
      std::set<std::string, std::less<>> names;
      for (int64_t r = 0; r < count; ++r) {
        if (!names.contains(column.values[r])) names.emplace(column.values[r]);
      }
      out.classes = ClassList::found({names.begin(), names.end()});
    }
    std::vector<std::string> unknown;
    for (int64_t r = 0; r < count; ++r) {
      const std::string_view value = column.values[r];
      std::optional<int64_t> number = out.classes.number(value);
      if (!number && options_.classes) number = integer_in(value);
      if (!number || *number < 0 || *number >= out.classes.size()) {
        if (unknown.empty() || unknown.back() != value) unknown.emplace_back(value);
        number = 0;
      }
      out.integers.push_back(*number);
    }
    out.classes.refuse_unknown(ClassList::found(std::move(unknown)).names(), "in " + file_.path());
  }

  // The type of a column's values, regardless of its name.
  ManifestField::Form form_of(const ManifestColumn& column) const {
    using Form = ManifestField::Form;
    const int64_t count = column.values.size();
    if (column.typed) {
      if (column.has_text + column.has_number + column.has_bool > 1) {
        raise(kBadManifestValue,
              file_.path() + ": column \"" + column.name +
                  "\" contains values of several types (strings, numbers, booleans)",
              "use one type for the whole column");
      }
      if (column.has_bool) return Form::kInteger;
      if (!column.has_number) return Form::kText;
    }
    bool digits = false, integers = true;
    auto missing = column.missing.begin();
    for (int64_t r = 0; r < count; ++r) {
      if (missing != column.missing.end() && *missing == r) {
        ++missing;
        continue;
      }
      const std::string_view value = column.values[r];
      digits |= value.find_first_of("0123456789") != value.npos;
      if (integers && integer_in(value)) continue;
      integers = false;
      // An integer beyond 64 bits is kept as text, because converting it would change it.
      if (!column.typed && is_whole(value) && !integer_in(value)) return Form::kText;
      if (!column.typed && !number_in(value)) return Form::kText;
    }
    if (!column.typed && !digits) return Form::kText;
    return integers ? Form::kInteger : Form::kNumber;
  }

  std::vector<int64_t> integers_of(const ManifestColumn& column) const {
    std::vector<int64_t> out;
    out.reserve(column.values.size());
    for (int64_t r = 0; r < column.values.size(); ++r) {
      out.push_back(integer_in(column.values[r]).value_or(0));
    }
    return out;
  }

  double number_of(const ManifestColumn& column, int64_t r) const {
    const std::string_view value = column.values[r];
    if (!column.typed) return *number_in(value);
    JsonReader json(value);
    const JsonNumber number = json.number();
    if (!number.integer && value.find_first_of(".eEN") == value.npos && !value.ends_with("nity")) {
      bad_value(column, r, std::string(value.substr(0, 40)) + " does not fit into 64 bits",
                "write it as a string");
    }
    return number.value;
  }

  template <class Number>
  std::vector<uint8_t> numbers_of(const ManifestColumn& column) const {
    std::vector<uint8_t> out(column.values.size() * sizeof(Number));
    auto missing = column.missing.begin();
    for (int64_t r = 0; r < column.values.size(); ++r) {
      double value = std::numeric_limits<double>::quiet_NaN();
      if (missing != column.missing.end() && *missing == r) {
        ++missing;
      } else {
        value = number_of(column, r);
      }
      const Number number = static_cast<Number>(value);
      std::memcpy(out.data() + r * sizeof number, &number, sizeof number);
    }
    return out;
  }

  DType narrowest(const ManifestColumn& column) const {
    FractionWidth width;
    auto missing = column.missing.begin();
    for (int64_t r = 0; r < column.values.size(); ++r) {
      if (missing != column.missing.end() && *missing == r) {
        ++missing;
      } else {
        width.add(column.values[r], number_of(column, r));
      }
    }
    return width.dtype();
  }

  void add_values(ManifestColumn& column, const std::string& name) {
    using Form = ManifestField::Form;
    ManifestField out;
    out.form = form_of(column);
    const bool missing = !column.missing.empty();
    if (missing && !options_.fill_missing && (out.form != Form::kText || column.typed)) {
      refuse_missing(column, "missing=\"fill\" reads absent numbers as NaN, absent text as empty");
    }
    if (missing && out.form == Form::kInteger) out.form = Form::kNumber;  // for the NaN
    switch (out.form) {
      case Form::kInteger:
        out.field = {.name = name, .dtype = DType::kInt64};
        out.integers = integers_of(column);
        break;
      case Form::kNumber:
        out.field = {.name = name, .dtype = options_.floats.value_or(narrowest(column))};
        out.numbers = out.field.dtype == DType::kFloat64 ? numbers_of<double>(column)
                                                         : numbers_of<float>(column);
        break;
      default:
        out.field = {.name = name, .kind = FieldKind::kText};
        out.names = std::move(column.values);
        out.names.shrink();
    }
    column.values = {};
    out_.push_back(std::move(out));
  }

  void check_names() const {
    if (out_.empty()) raise(kManifestColumns, "fields= excludes all fields of " + file_.path());
    for (size_t i = 0; i < out_.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (out_[i].field.name != out_[j].field.name) continue;
        raise(kManifestColumns, "two columns would become the field '" + out_[i].field.name + "'",
              "rename one, or exclude it with fields=");
      }
    }
  }

  ManifestTable table_;
  ManifestOptions options_;
  const File& file_;
  std::vector<const MediaRecord*> media_;  // by column, the media type of its paths; null: not
                                           // paths
  int64_t image_ = -1, label_ = -1;
  std::vector<ManifestField> out_;
};

}  // namespace

void bad_manifest_line(const File& file, int64_t line, std::string what, std::string hint) {
  throw Exception(Error{.code = &kBadManifest,
                        .what = "line " + std::to_string(line) + ": " + std::move(what),
                        .where = Where{.file = file.path()},
                        .hint = std::move(hint)});
}

std::vector<ManifestField> fields_of(ManifestTable table, ManifestOptions options,
                                     const File& file) {
  return ManifestMaker(std::move(table), std::move(options), file).make();
}

}  // namespace headrace
