// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/hdf5/hdf5_fields.h"

#include <algorithm>
#include <map>
#include <optional>

#include "headrace/codecs/codec.h"
#include "headrace/formats/arrays/array_columns.h"
#include "headrace/formats/hdf5/hdf5_groups.h"
#include "headrace/formats/hdf5/hdf5_heap.h"
#include "headrace/sources/field_names.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

const ErrorCode kDoNotFit{
    "HR0492", ErrorKind::kConfig, "datasets do not match",
    "The fields of an HDF5 file are datasets whose first dimension indexes the records; all must "
    "have the same length. By default, all datasets with the most common length are used. If that "
    "is ambiguous, or not what you want, select them: fields=['image=/train/x', "
    "'label=/train/y']."};

constexpr uint64_t kMaxPictureBytes = uint64_t{1} << 26;  // read to detect what a value is

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_word(std::string_view text) { return !text.empty() && field_name_of(text) == text; }

std::string shape_text(const Hdf5Space& space) {
  std::string out = "(";
  for (uint64_t size : space.sizes) out += (out.size() > 1 ? ", " : "") + std::to_string(size);
  return out + ")";
}

std::string listed(const std::vector<Hdf5Outline>& outlines) {
  std::string out;
  for (size_t i = 0; i < std::min<size_t>(outlines.size(), 5); ++i) {
    out += (i ? ", " : "") + outlines[i].path + " " + shape_text(outlines[i].space);
  }
  if (outlines.size() > 5) out += " and " + std::to_string(outlines.size() - 5) + " more";
  return out.empty() ? "none" : out;
}

bool has_rows(const Hdf5Outline& outline) {
  return !outline.space.null && !outline.space.sizes.empty();
}

// --- Which
// -----------------------------------------------------------------------------------------

std::vector<Hdf5Outline> outlines_of(const Hdf5File& file, Hdf5Directory& directory) {
  Hdf5Directory::Listing listing = directory.list();
  if (!listing.outside.empty()) {
    throw Exception(
        hdf5_leads_outside(file.file(), "an external link", listing.outside.front().path));
  }
  std::vector<Hdf5Outline> out;
  for (Hdf5Directory::Entry& entry : listing.datasets) {
    out.push_back(hdf5_outline(file, std::move(entry.path), entry.address));
  }
  return out;
}

// The number of rows of a set of datasets: that of those with known names; otherwise the most
// common one.
uint64_t rows_of_most(const Hdf5File& file, const std::vector<Hdf5Outline>& outlines) {
  struct Length {
    size_t datasets = 0;
    bool telling = false;
    std::string first;
  };
  std::map<uint64_t, Length> lengths;
  for (const Hdf5Outline& outline : outlines) {
    if (!has_rows(outline)) continue;
    Length& length = lengths[outline.space.sizes[0]];
    if (length.datasets++ == 0) length.first = outline.path;
    length.telling = length.telling || !meaning_of(last_part(outline.path)).empty();
  }
  if (lengths.empty()) {
    hdf5_fields_do_not_fit(file, "it has no dataset with rows",
                           "the first dimension of a dataset indexes the records");
  }
  const auto telling = static_cast<size_t>(std::count_if(
      lengths.begin(), lengths.end(), [](const auto& each) { return each.second.telling; }));
  const auto best =
      std::max_element(lengths.begin(), lengths.end(), [&](const auto& a, const auto& b) {
        if (telling == 1) return !a.second.telling && b.second.telling;
        return a.second.datasets < b.second.datasets;
      });
  const auto as_many = std::count_if(lengths.begin(), lengths.end(), [&](const auto& each) {
    return each.second.datasets == best->second.datasets;
  });
  if (telling > 1 || (telling == 0 && as_many > 1)) {
    std::string what = "its datasets have different numbers of rows:";
    size_t shown = 0;
    for (const auto& [rows, length] : lengths) {
      if (++shown > 4) break;
      what +=
          (shown > 1 ? ", " : " ") + length.first + " " + with_commas(static_cast<int64_t>(rows));
    }
    hdf5_fields_do_not_fit(file, std::move(what),
                           "name those that belong together: fields=['image=/train/images', ...]");
  }
  return best->first;
}

std::vector<Hdf5Choice> choose_by_length(const Hdf5File& file, Hdf5Directory& directory) {
  std::vector<Hdf5Outline> outlines = outlines_of(file, directory);
  const uint64_t rows = rows_of_most(file, outlines);
  std::vector<Hdf5Choice> out;
  for (Hdf5Outline& outline : outlines) {
    if (has_rows(outline) && outline.space.sizes[0] == rows)
      out.push_back({"", std::move(outline)});
  }
  if (out.size() > kMaxLikelyFields) {
    hdf5_fields_do_not_fit(
        file,
        with_commas(static_cast<int64_t>(out.size())) + " datasets have the same number of rows",
        "name at most 64 with fields=[...]; a dataset for each record is read after stacking them");
  }
  return out;
}

Hdf5Choice choose_named(const Hdf5File& file, Hdf5Directory& directory, const std::string& text) {
  std::string name, path = text;
  uint64_t address = directory.find(path);
  if (const size_t equals = text.find('='); address == kHdf5Undefined && equals != text.npos) {
    name = text.substr(0, equals), path = text.substr(equals + 1);
    if (!is_word(name)) {
      hdf5_fields_do_not_fit(file, "'" + name + "' cannot be a field's name",
                             "names are words of letters, digits and _, and not id, key or valid");
    }
    address = directory.find(path);
  }
  if (!path.starts_with('/')) path.insert(0, "/");
  bool is_dataset = false;
  if (address != kHdf5Undefined) {
    const Hdf5Object object = Hdf5Object::read(file, address);
    is_dataset = object.find(Hdf5MessageType::kLayout) != nullptr ||
                 object.find(Hdf5MessageType::kExternalFiles) != nullptr;
  }
  if (is_dataset) return {name, hdf5_outline(file, path, address)};
  std::vector<Hdf5Outline> there;
  for (Hdf5Directory::Entry& entry : directory.list().datasets) {
    there.push_back(hdf5_outline(file, std::move(entry.path), entry.address));
  }
  hdf5_fields_do_not_fit(file, "there is no dataset " + path, "the datasets are: " + listed(there),
                         path);
}

// --- Names and kinds
// -------------------------------------------------------------------------------

bool is_integer(DType dtype) { return !is_floating(dtype) && dtype != DType::kBool; }

// A picture's shape as delivered, by the rules for arrays in memory; none if it is not one.
std::optional<Shape> picture_shape(const Hdf5Type& type, const Shape& shape, bool& channels_last) {
  constexpr int64_t kLongestSide = int64_t{1} << 30;
  const bool bytes = type.what == Hdf5Type::Class::kNumber && type.dtype == DType::kUInt8;
  if (!bytes || shape.size() < 2 || shape.size() > 3) return {};
  Shape out = shape;
  if (out.size() == 2) out.insert(out.begin(), 1);
  channels_last = out[0] > 4 && out[2] >= 1 && out[2] <= 4;
  if (channels_last) out = {out[2], out[0], out[1]};
  const bool fits = out[0] >= 1 && out[0] <= 4 && out[1] >= 1 && out[2] >= 1 &&
                    out[1] <= kLongestSide && out[2] <= kLongestSide;
  if (!fits) return {};
  return out;
}

// Whether the first non-empty value has the signature of an image format.
bool holds_pictures(const Hdf5File& file, const Hdf5Dataset& dataset) {
  Buffer buffer;
  std::vector<uint8_t> element(dataset.row_bytes());
  for (uint64_t row = 0; row < std::min<uint64_t>(dataset.rows(), 16); ++row) {
    if (!dataset.read(row, 1, element)) return false;
    const Hdf5Reference reference = hdf5_reference(file, element);
    if (reference.is_empty()) continue;
    if (reference.count > kMaxPictureBytes) return false;
    Hdf5Place place;
    const Result<std::span<uint8_t>> value =
        read_hdf5_value(file, reference, reference.count, buffer, place);
    return value && begins_like_image(*value);
  }
  return false;
}

void plan_numbers(std::string_view meaning, Hdf5FieldPlan& plan) {
  Field& field = plan.field;
  field.kind = FieldKind::kTensor;
  field.dtype = plan.type.dtype;
  field.shape = plan.row_shape;
  bool channels_last = false;
  if (meaning == "image" || meaning == "mask") {
    if (const auto shape = picture_shape(plan.type, plan.row_shape, channels_last)) {
      field.kind = meaning == "mask" ? FieldKind::kMask : FieldKind::kImage;
      field.shape = *shape;
      plan.channels_last = channels_last;
    }
  }
  if (!field.shape.empty()) return;
  if (meaning == "label" && is_integer(field.dtype)) {
    field.kind = FieldKind::kLabel;
    field.dtype = DType::kInt64;
  }
  if (field.dtype == DType::kInt64) plan.form = Hdf5Form::kScalar;
}

void plan_one(const Hdf5File& file, const Hdf5Dataset& dataset, std::string_view meaning,
              Hdf5FieldPlan& plan) {
  const auto refuse = [&](const std::string& what) {
    throw Exception(
        hdf5_unsupported(file.file(), what, "exclude it with fields=[...]", dataset.path()));
  };
  Field& field = plan.field;
  if (plan.type.what != Hdf5Type::Class::kNumber && !plan.row_shape.empty()) {
    refuse("a list of strings or sequences in each record");
  }
  switch (plan.type.what) {
    case Hdf5Type::Class::kNumber:
      plan_numbers(meaning, plan);
      break;
    case Hdf5Type::Class::kText:
    case Hdf5Type::Class::kString:
      plan.form = plan.type.what == Hdf5Type::Class::kText ? Hdf5Form::kText : Hdf5Form::kString;
      field.kind = FieldKind::kText;
      if (meaning == "label") {
        plan.text_label = true;
        field.kind = FieldKind::kLabel;
        field.dtype = DType::kInt64;
      }
      break;
    case Hdf5Type::Class::kOpaque:
      plan.form = Hdf5Form::kBytes;
      field.kind = FieldKind::kBytes;
      break;
    case Hdf5Type::Class::kSequence:
      plan.form = Hdf5Form::kSequence;
      field.dtype = plan.type.dtype;
      if (size_of(plan.type.dtype) == 1 && plan.type.dtype != DType::kBool) {
        field.dtype = DType::kUInt8;
        field.kind = FieldKind::kBytes;
        if (holds_pictures(file, dataset)) {
          field.kind = meaning == "mask" ? FieldKind::kMask : FieldKind::kImage;
          field.shape = {-1, -1, -1};
          field.encoded = true;
        }
      } else {
        field.kind = FieldKind::kTensor;
        field.shape = {-1};
      }
      break;
    case Hdf5Type::Class::kRefused:
      refuse(plan.type.refusal);
  }
}

// The conventional name if the path has one; otherwise its last part, or all of it.
std::string name_for(const Hdf5FieldPlan& plan, const std::vector<Hdf5FieldPlan>& others) {
  const std::string_view meaning = meaning_of(last_part(plan.path));
  const auto is_free = [&](std::string_view name) {
    return std::none_of(others.begin(), others.end(),
                        [&](const Hdf5FieldPlan& other) { return other.field.name == name; });
  };
  const bool is_so = name_of(plan.field.kind) == meaning;
  std::string name =
      is_so && is_free(meaning) ? std::string(meaning) : field_name_of(last_part(plan.path));
  if (!is_free(name)) name = field_name_of(std::string_view(plan.path).substr(1));
  const std::string base = name;
  for (int i = 2; !is_free(name); ++i) name = base + "_" + std::to_string(i);
  return name;
}

}  // namespace

void hdf5_fields_do_not_fit(const Hdf5File& file, std::string what, std::string hint,
                            std::string member) {
  throw Exception(Error{.code = &kDoNotFit,
                        .what = std::move(what),
                        .where = Where{.file = file.file().path(), .member = std::move(member)},
                        .hint = std::move(hint)});
}

std::vector<Hdf5Choice> choose_hdf5_datasets(const Hdf5File& file,
                                             const std::vector<std::string>* fields) {
  Hdf5Directory directory(file);
  if (!fields) return choose_by_length(file, directory);
  if (fields->empty() || fields->size() > kMaxLikelyFields) {
    hdf5_fields_do_not_fit(file, "fields= names " + std::to_string(fields->size()) + " datasets",
                           "name 1 to 64 datasets, or omit it");
  }
  std::vector<Hdf5Choice> out;
  for (const std::string& text : *fields) {
    out.push_back(choose_named(file, directory, text));
    const Hdf5Outline& outline = out.back().outline;
    const Hdf5Outline& first = out.front().outline;
    if (!has_rows(outline)) {
      hdf5_fields_do_not_fit(file, outline.path + " is one value, without rows",
                             "the first dimension of a dataset indexes the records", outline.path);
    }
    if (outline.space.sizes[0] != first.space.sizes[0]) {
      hdf5_fields_do_not_fit(file,
                             outline.path + " has " +
                                 count_text(static_cast<int64_t>(outline.space.sizes[0]), "row") +
                                 ", but " + first.path + " has " +
                                 with_commas(static_cast<int64_t>(first.space.sizes[0])),
                             "all fields must have the same number of rows", outline.path);
    }
  }
  return out;
}

std::vector<Hdf5FieldPlan> plan_hdf5_fields(
    const Hdf5File& file, const std::vector<Hdf5Choice>& choices,
    const std::vector<std::unique_ptr<Hdf5Dataset>>& datasets) {
  std::vector<Hdf5FieldPlan> plans;
  for (size_t i = 0; i < choices.size(); ++i) {
    const Hdf5Dataset& dataset = *datasets[i];
    Hdf5FieldPlan plan;
    plan.path = dataset.path();
    plan.type = dataset.type();
    plan.row_shape = dataset.row_shape();
    const std::string& given = choices[i].name;
    plan_one(file, dataset, meaning_of(given.empty() ? last_part(plan.path) : given), plan);
    plan.field.name = given.empty() ? name_for(plan, plans) : given;
    for (const Hdf5FieldPlan& other : plans) {
      if (other.field.name == plan.field.name) {
        hdf5_fields_do_not_fit(file, "two fields have the name '" + given + "'",
                               "set names with fields=['name=/path', ...]");
      }
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace headrace
