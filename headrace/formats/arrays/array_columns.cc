// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/arrays/array_columns.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "headrace/base/parameters.h"
#include "headrace/base/text.h"
#include "headrace/base/utf8.h"
#include "headrace/sources/columns/column_cell.h"
#include "headrace/sources/field_names.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

constexpr int64_t kMaxChannels = 4;

bool is_channels(int64_t size) { return size >= 1 && size <= kMaxChannels; }

bool has_last_channels(const FileArray& array, const std::string& channels) {
  if (array.shape.size() != 3) return false;
  if (channels != "auto") return channels == "last";
  return array.shape[0] > kMaxChannels && is_channels(array.shape[2]);
}

bool is_label(const NamedArray& array) {
  if (std::holds_alternative<TextColumn>(array.values)) return true;
  const auto& numbers = std::get<FileArray>(array.values);
  return numbers.shape.empty() && !is_floating(numbers.dtype) && numbers.dtype != DType::kBool;
}

bool fits(std::string_view meaning, const NamedArray& array, const std::string& channels) {
  if (meaning == "label") return is_label(array);
  const auto* numbers = std::get_if<FileArray>(&array.values);
  return !meaning.empty() && numbers && can_be_picture(*numbers, channels);
}

void check_lengths(const std::vector<Column>& columns, const std::vector<NamedArray>& arrays) {
  for (size_t i = 1; i < columns.size(); ++i) {
    if (length_of(columns[i]) == length_of(columns[0])) continue;
    bad_column(arrays[i].choice.name,
               "it has " + count_text(length_of(columns[i]), "record") + ", but '" +
                   arrays[0].choice.name + "' has " + with_commas(length_of(columns[0])),
               "name those that belong together: fields=[\"" + arrays[0].choice.name +
                   "\", ...]; a field may be renamed: \"image=x_train\"");
  }
}

}  // namespace

Param array_fields_param() {
  return {.name = "fields",
          .type = ParamType::kStrings,
          .doc =
              "The arrays to read, each as \"name\" or \"field=name\". None: all arrays, under "
              "their own names."};
}

Param channels_param() {
  return {.name = "channels",
          .type = ParamType::kString,
          .doc =
              "Position of the channel axis in three-dimensional uint8 arrays of images: "
              "\"first\", \"last\", or \"auto\" (last if the last dimension is 1 to 4 and the "
              "first is larger). Batches are always channels-first.",
          .fallback = std::string("auto"),
          .choices = {"auto", "first", "last"}};
}

std::vector<ArrayChoice> choose_arrays(const std::vector<std::string>& names,
                                       const Arguments& arguments) {
  std::vector<ArrayChoice> out;
  if (arguments.is_none("fields")) {
    if (names.size() > kMaxFields) {
      bad_column(names[0],
                 "it is one of " + with_commas(static_cast<int64_t>(names.size())) +
                     " arrays; at "
                     "most " +
                     with_commas(kMaxFields) + " are supported",
                 "select fields with fields=");
    }
    for (const std::string& name : names) out.push_back({name, {}});
    return out;
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const auto is_there = [&](std::string_view name) {
    return std::find(views.begin(), views.end(), name) != views.end();
  };
  for (const std::string& text : arguments.texts("fields")) {
    ArrayChoice choice{text, {}};
    if (const size_t equals = text.find('='); !is_there(text) && equals != std::string::npos) {
      choice = {text.substr(equals + 1), text.substr(0, equals)};
    }
    if (!is_there(choice.name)) {
      const std::string_view near = nearest_name(choice.name, views);
      bad_column(choice.name, "there is no array of this name",
                 near.empty() ? "the arrays are " + quoted_list(names, 10)
                              : "did you mean \"" + std::string(near) + "\"?");
    }
    out.push_back(std::move(choice));
  }
  return out;
}

bool has_meaning(const NamedArray& array, const Arguments& arguments) {
  const std::string& name = array.choice.field.empty() ? array.choice.name : array.choice.field;
  return fits(meaning_of(name), array, arguments.text("channels"));
}

bool can_be_picture(const FileArray& array, const std::string& channels) {
  const Shape& shape = array.shape;
  if (array.dtype != DType::kUInt8 || shape.size() < 2 || shape.size() > 3) return false;
  if (std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 1; })) return false;
  return shape.size() == 2 || is_channels(shape[has_last_channels(array, channels) ? 2 : 0]);
}

void make_picture(FileArray& array, const std::string& channels) {
  if (!has_last_channels(array, channels)) return;
  array.channels_last = true;
  array.shape = {array.shape[2], array.shape[0], array.shape[1]};
}

std::vector<Column> columns_from_arrays(std::vector<NamedArray> arrays,
                                        const Arguments& arguments) {
  const std::string& channels = arguments.text("channels");
  std::vector<Column> columns;
  const auto is_free = [&](std::string_view name) {
    return std::none_of(columns.begin(), columns.end(),
                        [&](const Column& column) { return column.name == name; });
  };
  for (const NamedArray& array : arrays) {
    const std::string& given = array.choice.field;
    const std::string_view meaning = meaning_of(given.empty() ? array.choice.name : given);
    const bool means_it = fits(meaning, array, channels);
    Column& column = columns.emplace_back();
    if (!given.empty()) {
      column.name = given;
    } else if (means_it && is_free(meaning)) {
      column.name = meaning;
    } else {
      column.name = field_name_of(array.choice.name);
    }
    if (const auto* text = std::get_if<TextColumn>(&array.values)) {
      column.values = *text;
      column.kind = means_it ? FieldKind::kLabel : FieldKind::kText;
      continue;
    }
    FileArray numbers = std::get<FileArray>(array.values);
    column.kind = !means_it            ? FieldKind::kTensor
                  : meaning == "image" ? FieldKind::kImage
                  : meaning == "mask"  ? FieldKind::kMask
                                       : FieldKind::kLabel;
    if (column.kind && is_picture(*column.kind)) {
      make_picture(numbers, channels);
    }
    column.values = std::move(numbers);
  }
  check_lengths(columns, arrays);
  return columns;
}

// Names of arrays come from programs: case matters ("X", "y"), and they differ from the headings
// that people give to the columns of a table (kLabelHeadings).
std::string_view meaning_of(std::string_view name) {
  struct Known {
    std::string_view name, meaning;
  };
  static constexpr Known kKnown[] = {
      {"image", "image"}, {"images", "image"}, {"x", "image"},       {"X", "image"},
      {"mask", "mask"},   {"masks", "mask"},   {"label", "label"},   {"labels", "label"},
      {"y", "label"},     {"target", "label"}, {"targets", "label"},
  };
  for (const Known& known : kKnown) {
    if (known.name == name) return known.meaning;
  }
  return {};
}

std::string field_name_of(std::string_view text) {
  const bool utf8 = is_utf8(bytes_from_text(text));
  std::string out;
  for (const unsigned char c : text) {
    const bool letter = c >= 128 ? utf8 : c == '_' || std::isalnum(c);
    out += letter ? static_cast<char>(c) : '_';
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out.insert(0, "_");
  if (out == "id" || out == "key" || out == "valid") out += '_';
  return out;
}

}  // namespace headrace
