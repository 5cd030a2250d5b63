// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/webdataset/wds_fields.h"

#include <algorithm>
#include <array>
#include <optional>

#include "headrace/base/text.h"
#include "headrace/fields/media.h"
#include "headrace/sources/field_names.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

const ErrorCode kBadField{
    "HR0467", ErrorKind::kConfig, "invalid WebDataset field",
    "fields= selects components by extension (alternatives are separated by a semicolon), with an "
    "optional field name: fields=[\"image=jpg;png\", \"label=cls\"]. json_fields= names members of "
    "the JSON component and their types (int64, float32, float64, text): "
    "json_fields=[\"width:int64\", \"year=meta.date.year:int64\"]. Pickles (.pyd, .pkl, .pickle, "
    ".pth) can run arbitrary code when loaded, so they cannot be fields."};

constexpr std::array<std::string_view, 7> kPickles = {"pyd", "pkl",  "pickle", "pth",
                                                      "pt",  "ckpt", "joblib"};
// Extensions that mean a class, the most certain first; `count` and "cls2" are plain numbers if one
// of these exists.
constexpr std::array<std::string_view, 6> kLabels = {"cls", "class", "label", "id", "index", "inx"};
constexpr std::array<std::string_view, 4> kTexts = {"txt", "text", "caption", "transcript"};
constexpr std::array<std::string_view, 12> kMaskWords = {
    "mask",      "masks",    "seg",   "segmentation", "semantic",   "instance",
    "instances", "panoptic", "label", "labels",       "annotation", "gt"};

template <size_t kCount>
bool is_one_of(std::string_view text, const std::array<std::string_view, kCount>& all) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

std::string_view suffix_of(std::string_view extension) {
  return extension.substr(extension.rfind('.') + 1);  // npos + 1 is 0
}
std::string_view stem_of(std::string_view extension) {
  const size_t dot = extension.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : extension.substr(0, dot);
}

bool is_identifier(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string identifier_from(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = is_identifier("_" + std::string(1, c)) ? c : '_';
  if (!is_identifier(out)) out.insert(0, "_");
  return is_reserved_field(out) ? "sample_" + out : out;
}

bool is_mask_name(std::string_view name) {
  const size_t word = name.find_last_of("._-") + 1;
  return is_one_of(name.substr(word), kMaskWords);
}

// The meaning of an extension: the field's kind, its best name, and its fallback name.
struct Rule {
  WdsField field;
  std::string own_name;
  int rank = 9;  // if several have the same best name
};

Rule rule_of(const std::string& extension) {
  const std::string_view suffix = suffix_of(extension), stem = stem_of(extension);
  Rule rule{.field = {.field = {},
                      .how = WdsField::How::kBytes,
                      .extensions = {extension},
                      .json_path = {}},
            .own_name = identifier_from(extension)};
  Field& field = rule.field.field;
  const bool any = stem == "*";
  field.name = identifier_from(stem.empty() || any ? extension : stem);
  if (const auto media = media_by_suffix("." + std::string(suffix)); !media.empty()) {
    const MediaRecord& first = *media.front();
    const bool mask = first.kind == FieldKind::kImage && !any && is_mask_name(stem);
    field.kind = FieldKind::kBytes;
    record_of(mask ? FieldKind::kMask : first.kind).take(field);
    if (stem.empty() || any) field.name = first.name;
    rule.rank = static_cast<int>(std::ranges::find(first.usual, suffix) - first.usual.begin());
  } else if (is_one_of(extension, kLabels) || extension == "cls2" || extension == "count" ||
             (suffix == "cls" && !stem.empty())) {
    rule.field.how = WdsField::How::kInteger;
    field.kind = FieldKind::kTensor;
    field.dtype = DType::kInt64;
    if (is_one_of(extension, kLabels)) {
      field.name = "label";
      field.kind = FieldKind::kLabel;
      rule.rank =
          static_cast<int>(std::find(kLabels.begin(), kLabels.end(), extension) - kLabels.begin());
    }
  } else if (is_one_of(suffix, kTexts)) {
    field.kind = FieldKind::kText;
    if (stem.empty()) field.name = "text";
  } else if (suffix == "json" || suffix == "jsn") {
    field.kind = FieldKind::kText;
    if (stem.empty()) field.name = "json";
  } else if (suffix == "npy") {
    rule.field.how = WdsField::How::kArray;
    field.kind = FieldKind::kTensor;
  } else {
    field.kind = FieldKind::kBytes;
    field.name = rule.own_name;  // "txt.gz" is not text
  }
  return rule;
}

bool is_pickle(std::string_view extension) { return is_one_of(suffix_of(extension), kPickles); }

// Samples that have at least one of the extensions.
int64_t samples_with(const WdsField& field, const WdsCounts& counts) {
  int64_t out = 0;
  for (const WdsCounts::Set& set : counts.sets) {
    const bool has = std::any_of(set.extensions.begin(), set.extensions.end(),
                                 [&](const std::string& one) { return field.takes(one); });
    if (has) out += set.samples;
  }
  return out;
}

bool occur_together(const WdsField& field, const std::string& extension, const WdsCounts& counts) {
  int64_t both = 0, alone = 0;
  for (const WdsCounts::Set& set : counts.sets) {
    if (!set.has(extension)) continue;
    const bool too = std::any_of(set.extensions.begin(), set.extensions.end(),
                                 [&](const std::string& one) { return field.takes(one); });
    (too ? both : alone) += set.samples;
  }
  return both * 100 > alone;  // a single stray sample does not split a field
}

// Keeps the extensions that are likely to be fields, and counts the others.
size_t drop_rare(std::map<std::string, int64_t>& counts) {
  constexpr size_t kMax = 1024;
  if (counts.size() <= kMax) return 0;
  std::vector<std::pair<int64_t, std::string>> all;
  for (const auto& [extension, count] : counts) all.emplace_back(-count, extension);
  std::sort(all.begin(), all.end());
  for (size_t i = kMax; i < all.size(); ++i) counts.erase(all[i].second);
  return all.size() - kMax;
}

std::string without_dots(std::string_view extension) {
  return extension.empty() ? "a member without extension" : std::string(extension);
}

void check_name(const std::string& name, const std::vector<WdsField>& fields) {
  if (!is_identifier(name)) {
    bad_wds_field("\"" + name + "\" cannot be the name of a field",
                  "letters, digits and _, not beginning with a digit");
  }
  if (is_reserved_field(name)) bad_wds_field("every source already has a field \"" + name + "\"");
  for (const WdsField& field : fields) {
    if (field.field.name == name) bad_wds_field("the field \"" + name + "\" is specified twice");
  }
}

std::string extensions_text(const WdsCounts& counts) {
  std::map<std::string, int64_t> all;
  for (const WdsCounts::Set& set : counts.sets) {
    for (const std::string& extension : set.extensions) all[extension] += set.samples;
  }
  std::vector<std::string> names;
  for (const auto& [extension, count] : all) names.push_back(extension);
  return names.empty() ? "none" : quoted_list(names, 12);
}

WdsField field_from(const std::string& spec, const WdsCounts& counts,
                    const std::vector<WdsField>& before) {
  const size_t equals = spec.find('=');
  std::string_view list = spec;
  if (equals != std::string::npos) list.remove_prefix(equals + 1);
  std::vector<std::string> extensions;
  while (true) {
    const size_t end = std::min(list.find(';'), list.size());
    std::string_view one = list.substr(0, end);
    while (one.starts_with(' ') || one.starts_with('.')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one.empty()) bad_wds_field("no extension in \"" + spec + "\"", "as in \"image=jpg;png\"");
    if (is_pickle(one)) {
      bad_wds_field("\"" + std::string(one) + "\" is a pickle, which can run arbitrary code",
                    "store the values as json, npy, txt or cls");
    }
    extensions.push_back(lower_case(one));
    if (end == list.size()) break;
    list.remove_prefix(end + 1);
  }
  WdsField field = rule_of(extensions[0]).field;
  field.extensions = std::move(extensions);
  if (equals != std::string::npos) field.field.name = spec.substr(0, equals);
  check_name(field.field.name, before);
  Field& out = field.field;
  if (is_picture(out.kind)) {
    out.kind = is_mask_name(out.name) ? FieldKind::kMask : FieldKind::kImage;
  } else if (field.how == WdsField::How::kInteger) {
    out.kind = out.name == "label" ? FieldKind::kLabel : FieldKind::kTensor;
  }
  if (counts.unknown == 0 && counts.samples > 0 && samples_with(field, counts) == 0) {
    bad_wds_field("no sample has \"" + spec + "\"",
                  "the components are " + extensions_text(counts));
  }
  return field;
}

}  // namespace

void bad_wds_field(std::string what, std::string hint) {
  raise(kBadField, std::move(what), std::move(hint));
}

bool extension_fits(std::string_view mine, std::string_view extension) {
  if (!mine.starts_with("*.")) return same_extension(mine, extension);
  const std::string_view suffix = mine.substr(1);
  return extension.size() > suffix.size() &&
         same_extension(suffix, extension.substr(extension.size() - suffix.size()));
}

bool WdsField::takes(std::string_view extension) const {
  return std::any_of(extensions.begin(), extensions.end(),
                     [&](const std::string& mine) { return extension_fits(mine, extension); });
}

WdsChoice guessed_wds_fields(const WdsCounts& counts) {
  std::map<std::string, int64_t> each;
  for (const WdsCounts::Set& set : counts.sets) {
    for (const std::string& extension : set.extensions) each[extension] += set.samples;
  }
  const size_t rare = drop_rare(each);
  std::vector<std::pair<int64_t, Rule>> rules;  // the most frequent first, then the most certain
  WdsChoice choice;
  const auto leave_out = [&](const std::string& extension, const char* why, int64_t count) {
    choice.left_out.push_back(without_dots(extension) + " (" + why + with_commas(count) + " of " +
                              with_commas(counts.samples) + ")");
  };
  for (const auto& [extension, count] : each) {
    if (is_pickle(extension)) {
      leave_out(extension, "pickles; ", count);
    } else {
      rules.emplace_back(count, rule_of(extension));
    }
  }
  std::stable_sort(rules.begin(), rules.end(), [](const auto& a, const auto& b) {
    return a.second.rank != b.second.rank ? a.second.rank < b.second.rank : a.first > b.first;
  });
  std::vector<WdsField> all;
  const auto named = [&](const std::string& name) {
    return std::find_if(all.begin(), all.end(),
                        [&](const WdsField& field) { return field.field.name == name; });
  };
  for (auto& [count, rule] : rules) {
    const auto same = named(rule.field.field.name);
    if (same == all.end()) {
      all.push_back(std::move(rule.field));
    } else if (same->how == rule.field.how && same->field.kind == rule.field.field.kind &&
               !occur_together(*same, rule.field.extensions[0], counts)) {
      same->extensions.push_back(rule.field.extensions[0]);
    } else {
      rule.field.field.name = rule.own_name;
      if (rule.field.field.kind == FieldKind::kLabel) rule.field.field.kind = FieldKind::kTensor;
      if (named(rule.own_name) == all.end()) all.push_back(std::move(rule.field));
    }
  }
  for (WdsField& field : all) {
    const int64_t count = samples_with(field, counts);
    if (count * 2 >= counts.samples) {
      choice.fields.push_back(std::move(field));
    } else {
      leave_out(field.extensions[0], "", count);
    }
  }
  if (rare > 0) choice.left_out.push_back(with_commas(int64_t(rare)) + " rare extensions");
  // Pictures and the label first, the rest by name.
  std::stable_sort(choice.fields.begin(), choice.fields.end(),
                   [](const WdsField& a, const WdsField& b) {
                     const auto place = [](const WdsField& field) {
                       return field.field.name == "image"             ? 0
                              : field.field.encoded                   ? 1
                              : field.field.kind == FieldKind::kLabel ? 2
                                                                      : 3;
                     };
                     const int left = place(a), right = place(b);
                     return left != right ? left < right : a.field.name < b.field.name;
                   });
  return choice;
}

WdsChoice given_wds_fields(const std::vector<std::string>& specs, const WdsCounts& counts) {
  WdsChoice choice;
  if (specs.empty()) bad_wds_field("fields= is an empty list", "name at least one extension");
  for (const std::string& spec : specs) {
    choice.fields.push_back(field_from(spec, counts, choice.fields));
  }
  return choice;
}

void add_json_fields(const std::vector<std::string>& specs, const WdsCounts& counts,
                     WdsChoice& choice) {
  if (specs.empty()) return;
  std::vector<std::string> extensions;
  for (const char* extension : {"json", "jsn"}) {
    if (samples_with({.field = {}, .how = {}, .extensions = {extension}, .json_path = {}}, counts) >
            0 ||
        counts.unknown > 0) {
      extensions.emplace_back(extension);
    }
  }
  if (extensions.empty()) {
    bad_wds_field("json_fields= is given, but no sample has a json component",
                  "the components are " + extensions_text(counts));
  }
  for (const std::string& spec : specs) {
    const size_t colon = spec.rfind(':'), equals = spec.find('=');
    const std::string type = colon == std::string::npos ? "" : spec.substr(colon + 1);
    const std::string place = spec.substr(0, colon);
    WdsField field{
        .field = {}, .how = WdsField::How::kJson, .extensions = extensions, .json_path = {}};
    field.field.name = place.substr(0, equals);
    std::string_view path = place;
    if (equals < place.size()) path.remove_prefix(equals + 1);
    for (size_t begin = 0; begin <= path.size();) {
      const size_t dot = std::min(path.find('.', begin), path.size());
      field.json_path.emplace_back(path.substr(begin, dot - begin));
      begin = dot + 1;
    }
    Field& out = field.field;
    check_name(out.name, choice.fields);
    if (type == "int64") {
      out.dtype = DType::kInt64;
      out.kind = out.name == "label" ? FieldKind::kLabel : FieldKind::kTensor;
    } else if (type == "float32" || type == "float64") {
      out.dtype = type == "float32" ? DType::kFloat32 : DType::kFloat64;
    } else if (type == "text") {
      out.kind = FieldKind::kText;
    } else {
      bad_wds_field("no type in \"" + spec + "\"",
                    "\"" + out.name + ":int64\", or float32, float64, text");
    }
    choice.fields.push_back(std::move(field));
  }
}

int64_t complete_samples(const std::vector<WdsField>& fields, const WdsCounts& counts) {
  int64_t out = 0;
  for (const WdsCounts::Set& set : counts.sets) {
    const bool complete = std::all_of(fields.begin(), fields.end(), [&](const WdsField& field) {
      return field.how == WdsField::How::kFolder ||
             std::any_of(set.extensions.begin(), set.extensions.end(),
                         [&](const std::string& one) { return field.takes(one); });
    });
    if (complete) out += set.samples;
  }
  return out;
}

}  // namespace headrace
