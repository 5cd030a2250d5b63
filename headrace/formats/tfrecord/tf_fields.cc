// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/tfrecord/tf_fields.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "headrace/base/number_text.h"
#include "headrace/base/parameters.h"
#include "headrace/base/text.h"
#include "headrace/base/utf8.h"
#include "headrace/sources/field_names.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

const ErrorCode kBadFields{
    "HR0474", ErrorKind::kConfig, "invalid TFRecord fields",
    "Write a field of a TFRecord as \"NAME=FEATURE\", or as \"NAME=FEATURE:TYPE[SHAPE]\" to avoid "
    "inference: types are image, mask, label, text, bytes, and dtypes (int64 and float32 for lists "
    "of numbers, any for bytes that hold an array), and the first dimension of a shape may be -1. "
    "Lists of several byte strings, and features whose type varies between records, cannot be a "
    "field."};

constexpr int64_t kMaxElements = int64_t{1} << 40;

[[noreturn]] void bad_field(const std::string& spec, const std::string& what,
                            const std::string& hint = {}) {
  raise(kBadFields, "\"" + spec + "\": " + what, hint);
}

bool has_part(std::string_view name, std::initializer_list<std::string_view> parts) {
  while (!name.empty()) {
    const size_t end = std::min(name.find_first_of("/_.-"), name.size());
    if (std::find(parts.begin(), parts.end(), name.substr(0, end)) != parts.end()) return true;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return false;
}

Field picture_field(FieldKind kind) {
  return {.name = {}, .kind = kind, .dtype = DType::kUInt8, .shape = {-1, -1, -1}, .encoded = true};
}

// The field for the observed values, without a name; or the reason if there is none.
std::optional<Field> fitting_field(const TfSample::Key& key, const TfSeen& seen, int64_t examples,
                                   std::string& reason) {
  const auto& [feature, is_list] = key;
  const bool bytes = seen.kinds[size_t(TfKind::kBytes)],
             floats = seen.kinds[size_t(TfKind::kFloat)];
  const bool integers = seen.kinds[size_t(TfKind::kInt64)];
  const auto none = [&reason](const char* why) {
    reason = why;
    return std::nullopt;
  };
  if (seen.max_count == 0) return none("it has no values");
  if (int{bytes} + int{floats} + int{integers} > 1) return none("its type differs");
  if (bytes) {
    if (is_list || seen.max_count > 1) return none("several byte strings");
    if (2 * seen.pictures > seen.byte_values) {
      return picture_field(has_part(feature, {"mask", "masks", "segmentation"})
                               ? FieldKind::kMask
                               : FieldKind::kImage);
    }
    return Field{.name = {}, .kind = seen.text ? FieldKind::kText : FieldKind::kBytes};
  }
  Field field{.name = {}, .dtype = floats ? DType::kFloat32 : DType::kInt64};
  const bool fixed = seen.min_count == seen.max_count;
  if (is_list) {
    if (!fixed) return none("the lengths of its steps differ");
    field.shape = {-1};
    if (seen.max_count > 1) field.shape.push_back(seen.max_count);
  } else if (!fixed || seen.records < examples) {
    field.shape = {-1};
  } else if (seen.max_count > 1) {
    field.shape = {seen.max_count};
  }
  return field;
}

bool is_optional(const TfSeen& seen, const TfSample& sample) {
  return seen.records < sample.examples() || seen.min_count == 0;
}

bool is_integer_scalar(const Field& field) {
  return field.dtype == DType::kInt64 && field.shape.empty() &&
         (field.kind == FieldKind::kTensor || field.kind == FieldKind::kLabel);
}

// Returns the field of this kind if it is the only unnamed one, so that it gets the standard name.
TfField* only(std::vector<TfField>& fields, FieldKind kind) {
  TfField* found = nullptr;
  for (TfField& field : fields) {
    if (!field.field.name.empty() || field.field.kind != kind) continue;
    if (found) return nullptr;
    found = &field;
  }
  return found;
}

TfField* label_among(std::vector<TfField>& fields) {
  TfField* found = nullptr;
  int count = 0;
  for (TfField& field : fields) {
    if (!field.field.name.empty() || field.is_list || !is_integer_scalar(field.field)) continue;
    if (field.feature == "label" || field.feature == "image/class/label") return &field;
    if (field.feature.ends_with("/label") && ++count == 1) found = &field;
  }
  return count == 1 ? found : nullptr;
}

bool is_word(std::string_view name) {
  return is_field_word(name) && is_utf8(bytes_from_text(name));
}

// "image/object/bbox/xmin" -> "image_object_bbox_xmin"
std::string word_of(std::string_view feature, bool picture) {
  if (picture && feature.size() > 8 && feature.ends_with("/encoded")) feature.remove_suffix(8);
  std::string out;
  for (const char c : feature) {
    const auto byte = static_cast<unsigned char>(c);
    out += std::isalnum(byte) && byte < 128 ? c : '_';
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out.insert(0, "_");
  if (is_reserved_field(out)) out += '_';
  return out;
}

// Names the fields without a name.
void name_fields(std::vector<TfField>& fields) {
  FieldNames taken;
  for (const TfField& field : fields) taken.add(field.field.name);
  const auto give = [&taken](TfField* field, const std::string& name) {
    if (field && taken.add(name)) field->field.name = name;
  };
  give(only(fields, FieldKind::kImage), "image");
  give(only(fields, FieldKind::kMask), "mask");
  if (TfField* label = label_among(fields); label && !taken.has("label")) {
    give(label, "label");
    label->field.kind = FieldKind::kLabel;
  }
  for (TfField& field : fields) {
    if (!field.field.name.empty()) continue;
    field.field.name = taken.take(word_of(field.feature, field.field.encoded));
  }
}

int rank_of(const TfField& field) {
  switch (field.field.kind) {
    case FieldKind::kImage:
      return 0;
    case FieldKind::kMask:
      return 1;
    case FieldKind::kLabel:
      return 2;
    default:
      return 3;
  }
}

// --- Fields as they are given
// ---------------------------------------------------------------------

struct FieldSpec {
  std::string name, feature, type;
  std::optional<Shape> shape;
};

bool is_type(std::string_view type) {
  for (std::string_view each : {"image", "mask", "label", "text", "bytes"}) {
    if (type == each) return true;
  }
  return dtype_from_name(type).has_value();
}

std::optional<Shape> shape_in(std::string_view text) {
  Shape shape;
  int64_t elements = 1;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    const auto size = number_from<int64_t>(part);
    if (!size) return {};
    const bool open = *size == -1 && shape.empty();
    if (!open && (*size < 1 || *size > kMaxElements / elements)) return {};
    if (!open) elements *= *size;
    shape.push_back(*size);
  }
  return shape;
}

FieldSpec parse_spec(const std::string& text) {
  FieldSpec out;
  std::string_view rest = text;
  if (const size_t equals = rest.find('='); equals != std::string_view::npos) {
    out.name = rest.substr(0, equals);
    rest.remove_prefix(equals + 1);
    if (!is_word(out.name)) {
      bad_field(text, "a field name must be an identifier",
                "use letters, digits and _, not starting with a digit");
    }
    if (is_reserved_field(out.name)) {
      bad_field(text, "every source has a field '" + out.name + "' already", "choose another name");
    }
  }
  if (const size_t colon = rest.rfind(':'); colon != std::string_view::npos) {
    const std::string_view type = rest.substr(colon + 1);
    const size_t bracket = std::min(type.find('['), type.size());
    if (is_type(type.substr(0, bracket))) {
      out.type = type.substr(0, bracket);
      if (bracket < type.size()) {
        const bool closed = type.ends_with(']');
        out.shape =
            closed ? shape_in(type.substr(bracket + 1, type.size() - bracket - 2)) : std::nullopt;
        if (!out.shape) {
          bad_field(text, "no shape: " + std::string(type.substr(bracket)),
                    "a shape is [3] or [224,224,3]; its first size may be -1, [] is one number");
        }
      }
      rest = rest.substr(0, colon);
    }
  }
  out.feature = rest;
  if (out.feature.empty()) bad_field(text, "no feature is named", "write NAME=FEATURE");
  return out;
}

// The feature in the sample: from the context before a list.
const std::pair<const TfSample::Key, TfSeen>* find(const TfSample& sample,
                                                   const std::string& feature) {
  for (const bool is_list : {false, true}) {
    const auto found = sample.features().find({feature, is_list});
    if (found != sample.features().end()) return &*found;
  }
  return nullptr;
}

[[noreturn]] void no_feature(const std::string& text, const FieldSpec& spec,
                             const TfSample& sample) {
  std::vector<std::string> names;
  for (const auto& [key, seen] : sample.features()) names.push_back(key.first);
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string_view near = nearest_name(spec.feature, views);
  bad_field(text,
            "there is no such feature in " + count_text(sample.examples(), "record") +
                " that were looked at",
            !near.empty()   ? "did you mean \"" + std::string(near) + "\"?"
            : names.empty() ? "they have no features"
                            : "they have " + quoted_list(names, 12));
}

// The field of an explicitly given type.
Field typed_field(const std::string& text, const FieldSpec& spec, const TfSeen* seen,
                  const std::optional<Field>& fitting, bool is_list) {
  const auto refuse = [&](bool wrong, const char* what) {
    if (wrong) bad_field(text, what);
  };
  const auto has = [seen](TfKind kind) { return seen && seen->kinds[size_t(kind)]; };
  const bool numbers = has(TfKind::kFloat) || has(TfKind::kInt64);
  const bool plain = spec.type == "image" || spec.type == "mask" || spec.type == "text" ||
                     spec.type == "bytes" || spec.type == "label";
  refuse(plain && spec.shape, "this type has no shape");
  refuse(plain && is_list, "a list of steps is a tensor: specify its dtype");
  if (spec.type == "label") {
    refuse(has(TfKind::kBytes) || has(TfKind::kFloat), "a label must be an integer");
    return {.name = {}, .kind = FieldKind::kLabel, .dtype = DType::kInt64};
  }
  refuse(plain && numbers, "the feature contains numbers, not bytes");
  if (spec.type == "image") return picture_field(FieldKind::kImage);
  if (spec.type == "mask") return picture_field(FieldKind::kMask);
  if (spec.type == "text") return {.name = {}, .kind = FieldKind::kText};
  if (spec.type == "bytes") return {.name = {}, .kind = FieldKind::kBytes};
  Field field{.name = {}, .dtype = *dtype_from_name(spec.type)};
  refuse(has(TfKind::kInt64) && field.dtype != DType::kInt64, "the feature contains int64");
  refuse(has(TfKind::kFloat) && field.dtype != DType::kFloat32, "the feature contains float32");
  if (spec.shape) {
    field.shape = *spec.shape;
    refuse(is_list && field.shape.empty(), "a list of steps is not a single number");
  } else if (fitting && fitting->kind == FieldKind::kTensor) {
    field.shape = fitting->shape;
  } else {
    field.shape = {-1};
  }
  return field;
}

TfField field_of(const std::string& text, const TfSample& sample, bool all) {
  const FieldSpec spec = parse_spec(text);
  const auto* found = find(sample, spec.feature);
  if (!found && (all || spec.type.empty())) no_feature(text, spec, sample);
  TfField out{.field = {}, .feature = spec.feature, .is_list = found && found->first.second};
  std::string reason;
  std::optional<Field> fitting;
  if (found) {
    out.optional = is_optional(found->second, sample);
    fitting = fitting_field(found->first, found->second, sample.examples(), reason);
  }
  if (!spec.type.empty()) {
    out.field = typed_field(text, spec, found ? &found->second : nullptr, fitting, out.is_list);
  } else if (fitting) {
    out.field = std::move(*fitting);
  } else {
    bad_field(text, "its type cannot be inferred: " + reason,
              "specify its type: NAME=FEATURE:TYPE[SHAPE]");
  }
  out.field.name = spec.name;
  if (spec.name == "label" && is_integer_scalar(out.field)) out.field.kind = FieldKind::kLabel;
  if (spec.type.empty() && out.field.encoded && (spec.name == "mask" || spec.name == "masks")) {
    out.field.kind = FieldKind::kMask;
  }
  return out;
}

}  // namespace

std::vector<TfField> guessed_fields(const TfSample& sample, std::vector<std::string>& left_out) {
  std::vector<TfField> fields;
  if (sample.features().size() > kMaxFields) {
    raise(kBadFields,
          "the records have " + with_commas(static_cast<int64_t>(sample.features().size())) +
              " features, and at most " + with_commas(kMaxFields) + " can be fields",
          "select fields with fields=");
  }
  for (const auto& [key, seen] : sample.features()) {
    std::string reason;
    std::optional<Field> field = fitting_field(key, seen, sample.examples(), reason);
    if (field) {
      fields.push_back({.field = std::move(*field),
                        .feature = key.first,
                        .is_list = key.second,
                        .optional = is_optional(seen, sample)});
    } else {
      left_out.push_back(key.first + ": " + reason);
    }
  }
  name_fields(fields);
  std::stable_sort(fields.begin(), fields.end(),
                   [](const TfField& a, const TfField& b) { return rank_of(a) < rank_of(b); });
  return fields;
}

std::vector<TfField> given_fields(const std::vector<std::string>& specs, const TfSample& sample,
                                  bool all) {
  if (specs.empty()) raise(kBadFields, "fields= is empty", "omit fields= to read all");
  std::vector<TfField> fields;
  for (const std::string& spec : specs) {
    fields.push_back(field_of(spec, sample, all));
    for (size_t i = 0; i + 1 < fields.size(); ++i) {
      const std::string& name = fields.back().field.name;
      if (!name.empty() && fields[i].field.name == name) bad_field(spec, "the name appears twice");
    }
  }
  name_fields(fields);
  return fields;
}

}  // namespace headrace
