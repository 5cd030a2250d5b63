// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/field_kinds.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/base/parameters.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/source_around.h"

namespace headrace {
namespace {

const ErrorCode kBadKinds{
    "HR0181", ErrorKind::kConfig, "unsupported field kind",
    "kinds={\"seg\": \"mask\"} declares how transforms treat a field. Encoded images and "
    "bytes may be \"image\", \"mask\" or \"bytes\"; uint8 arrays of (C, H, W) or (H, W) \"image\" "
    "or \"mask\"; encoded videos \"video\"; encoded audio and float32 arrays of (channels, "
    "samples) \"audio\"; numeric arrays \"boxes\" (..., 4), \"keypoints\" (..., 2 or more), "
    "\"masks\" (..., H, W) or \"tensor\"; integers \"label\" or \"tensor\"; text is \"text\". "
    "Boxes in pixels need their format: \"boxes:xyxy\" (left, top, right, bottom), \"boxes:xywh\" "
    "(left, top, width, height) or \"boxes:cxcywh\" (center, width, height); boxes relative to "
    "the image size are \"boxes:cxcywh_normalized\" and the like, which ConvertBoundingBoxFormat "
    "converts to pixels. A format that the source already knows cannot be redeclared, since that "
    "would convert nothing."};

const ErrorCode kMaskOrImage{
    "HR0182", ErrorKind::kConfig, "image field named like a mask",
    "The field holds images, and its name contains mask. Mask values are class ids: they are "
    "resized without interpolation, and color and dtype transforms do not apply. Declare which it "
    "is: kinds={\"seg_mask\": \"mask\"}, or kinds={\"seg_mask\": \"image\"} for an image that is "
    "scaled, converted and normalized like any other."};

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// "image/object/bbox_xmin" -> image, object, bbox, xmin.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (std::isalpha(static_cast<unsigned char>(c))) {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!words.back().empty() && !std::isdigit(static_cast<unsigned char>(c))) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool is_coordinate(std::string_view word) {
  return is_one_of(word, {"x", "y", "w", "h", "xmin", "xmax", "ymin", "ymax", "width", "height",
                          "left", "right", "top", "bottom", "cx", "cy", "xyxy", "xywh", "cxcywh"});
}

bool names_boxes(const std::vector<std::string>& words, const Shape& shape) {
  const std::string_view last = words.back();
  if (is_one_of(last, {"bbox", "bboxes", "box", "boxes"})) {
    return !shape.empty() && (shape.back() == 4 || shape.back() == -1);
  }
  if (is_one_of(last, {"xmin", "xmax", "ymin", "ymax"})) return true;
  return is_coordinate(last) && std::ranges::any_of(words, [](const std::string& word) {
           return is_one_of(word, {"bbox", "bboxes", "box", "boxes"});
         });
}

bool names_mask(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  return std::ranges::any_of(words, [](const std::string& word) {
    return word.ends_with("mask") || word.ends_with("masks");
  });
}

// Whether the last two dimensions equal the size of one of the record's images.
bool has_image_size(const Shape& shape, const Schema& record) {
  if (shape.size() < 2) return false;
  return std::ranges::any_of(record, [&](const Field& other) {
    return is_picture(other.kind) && !other.encoded && other.shape.size() == 3 &&
           other.shape[1] > 1 && other.shape[2] > 1 && other.shape[2] == shape.back() &&
           other.shape[1] == shape[shape.size() - 2];
  });
}

// "boxes:xyxy", as declared by the user.
std::optional<Meaning> meaning_from(std::string_view said) {
  const size_t colon = said.find(':');
  const KindRecord* const kind = find_kind(said.substr(0, colon));
  if (!kind) return std::nullopt;
  Meaning meaning(kind->kind);
  if (colon == std::string_view::npos) return meaning;
  meaning.box_format = box_format_from_name(said.substr(colon + 1));
  const bool known =
      kind->kind == FieldKind::kBoxes && meaning.box_format != BoxFormat::kUnspecified;
  return known ? std::optional(meaning) : std::nullopt;
}

std::string text_of(const Meaning& meaning) {
  const std::string_view format = name_of(meaning.box_format);
  return std::string(name_of(meaning.kind)) + (format.empty() ? "" : ":") + std::string(format);
}

std::string known_kinds() {
  std::string out;
  for (const KindRecord* kind : all_kinds()) out += std::string(kind->name) + ", ";
  return out +
         "boxes:xyxy, boxes:xywh, boxes:cxcywh; or boxes:xyxy_normalized and the like; "
         "boxes:xywhr, boxes:cxcywhr, boxes:xyxyxyxy for rotated ones";
}

// The field with the declared kind; false if that is impossible.
bool turn_into(const Meaning& meaning, Field& field) {
  if (field.kind != meaning.kind && !record_of(meaning.kind).take(field)) return false;
  if (meaning.kind != FieldKind::kBoxes) field.box_format = BoxFormat::kUnspecified;
  if (meaning.box_format == BoxFormat::kUnspecified) return true;
  field.box_format = meaning.box_format;
  if (is_rotated(meaning.box_format) && !is_floating(field.dtype)) return false;
  return !field.shape.empty() &&
         (field.shape.back() == numbers_of(meaning.box_format) || field.shape.back() == -1);
}

// Declaring another format does not convert: xyxy boxes would be transformed as if they were xywh.
bool contradicts(const Meaning& meaning, const Field& before) {
  constexpr BoxFormat kUnspecified = BoxFormat::kUnspecified;
  return before.kind == FieldKind::kBoxes && before.box_format != kUnspecified &&
         meaning.box_format != kUnspecified && meaning.box_format != before.box_format;
}

class SourceWithKinds final : public SourceAround {
 public:
  SourceWithKinds(SourcePtr inner, const Kinds& kinds)
      : SourceAround(std::move(inner)), schema_(this->inner()->schema()) {
    std::vector<std::string_view> names;
    for (const Field& field : schema_) names.push_back(field.name);
    Fingerprint print;
    print.add(this->inner()->fingerprint());
    for (const auto& [name, meaning] : kinds) {
      const FieldKind kind = meaning.kind;
      const auto field = std::ranges::find(schema_, name, &Field::name);
      if (field == schema_.end()) {
        const std::string_view near = nearest_name(name, names);
        raise(kBadKinds, "kinds= names \"" + name + "\", and there is no such field",
              near.empty() ? "the fields are " + all_of(names)
                           : "did you mean \"" + std::string(near) + "\"?");
      }
      const Field before = *field;
      if (contradicts(meaning, before)) {
        raise(kBadKinds,
              "kinds= declares that \"" + name + "\" is \"" + text_of(meaning) +
                  "\", but the source says " + std::string(name_of(before.box_format)),
              "omit the format; hr.coco delivers another one with boxes=\"" +
                  std::string(name_of(meaning.box_format)) + "\"");
      }
      if (!turn_into(meaning, *field)) {
        raise(kBadKinds,
              "kinds= declares that \"" + name + "\" is \"" + text_of(meaning) +
                  "\", but its values have a different form (" + std::string(name_of(before.kind)) +
                  ")",
              "see `headrace explain HR0181` for which kind fits which values");
      }
      if (!is_picture(before.kind) && is_picture(kind) && before.shape.size() == 2) {
        planes_.push_back(static_cast<size_t>(field - schema_.begin()));
      }
      // The kinds image and mask affect decoding; kinds of tensors do not affect values.
      if (before.kind == kind || !(is_picture(before.kind) || is_picture(kind))) continue;
      print.add(name);
      print.add(static_cast<uint64_t>(kind));
      changes_values_ = true;
    }
    fingerprint_ = print.value();
  }

  const Schema& schema() const override { return schema_; }
  uint64_t fingerprint() const override {
    return changes_values_ ? fingerprint_ : inner()->fingerprint();
  }
  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    inner()->read(indices, wanted, out);
    for (const size_t field : planes_) {
      for (RecordData& record : out) {
        if (!record.result || record.fields[field].shape.empty()) continue;
        Shape& shape = record.fields[field].shape;
        shape.insert(shape.begin(), 1);
      }
    }
  }

 private:
  static std::string all_of(const std::vector<std::string_view>& names) {
    std::string out;
    for (const std::string_view name : names) {
      out += (out.empty() ? "" : ", ") + std::string(name);
    }
    return out;
  }

  Schema schema_;
  std::vector<size_t> planes_;  // stored as (H, W), delivered as (1, H, W)
  bool changes_values_ = false;
  uint64_t fingerprint_ = 0;
};

}  // namespace

FieldKind evident_kind(const Field& field, const Schema& record) {
  if (field.kind != FieldKind::kTensor || field.dtype == DType::kBool) {
    const bool plane = field.kind == FieldKind::kTensor && has_image_size(field.shape, record);
    return plane ? FieldKind::kMasks : field.kind;
  }
  const std::vector<std::string> words = words_of(field.name);
  if (!words.empty()) {
    if (names_boxes(words, field.shape)) return FieldKind::kBoxes;
    if (is_one_of(words.back(), {"keypoint", "keypoints", "landmarks"}) && !field.shape.empty()) {
      return FieldKind::kKeypoints;
    }
    if (field.shape.size() >= 2 && names_mask(field.name)) return FieldKind::kMasks;
  }
  return has_image_size(field.shape, record) ? FieldKind::kMasks : field.kind;
}

Kinds kinds_from(const std::vector<std::string>& said) {
  Kinds kinds;
  for (const std::string& each : said) {
    const size_t end = each.rfind('=');
    const std::string_view said = std::string_view(each).substr(end + 1);
    const std::optional<Meaning> meaning = meaning_from(said);
    if (end == std::string::npos || !meaning) {
      raise(kBadKinds, "kinds= says \"" + std::string(said) + "\", which is not a kind",
            known_kinds());
    }
    kinds[each.substr(0, end)] = *meaning;
  }
  return kinds;
}

SourcePtr with_kinds(SourcePtr source, const Kinds& kinds) {
  if (kinds.empty()) return source;
  return std::make_shared<SourceWithKinds>(std::move(source), kinds);
}

SourcePtr with_evident_kinds(SourcePtr source, const Kinds& said, bool asks) {
  source = with_kinds(std::move(source), said);
  Kinds evident;
  for (const Field& field : source->schema()) {
    if (said.contains(field.name)) continue;
    if (asks) reject_mask_named_image(field);
    const FieldKind kind = evident_kind(field, source->schema());
    if (kind != field.kind) evident[field.name] = kind;
  }
  return with_kinds(std::move(source), evident);
}

void reject_mask_named_image(const Field& field) {
  if (field.kind != FieldKind::kImage || !names_mask(field.name)) return;
  raise(kMaskOrImage, "\"" + field.name + "\" is an image, but its name contains mask",
        "kinds={\"" + field.name + "\": \"mask\"} for class ids, kinds={\"" + field.name +
            "\": \"image\"} for an image");
}

}  // namespace headrace
