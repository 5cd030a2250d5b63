// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/batch/batch_mixing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

const ErrorCode kMixedSizes{
    "HR0531", ErrorKind::kConfig, "images to mix differ in size",
    "CutMix draws one box per record and replaces it in every image, so the images of a record "
    "must be equal in size. Select the images to work on with fields=."};

template <class Mixed>
void blend(const typename Mixed::Stored* partner, typename Mixed::Stored* row, size_t count,
           float own, float rest) {
  for (size_t i = 0; i < count; ++i) row[i] = Mixed::mix(partner[i], row[i], own, rest);
}

// In blocks, so that only a small copy of the row that is written first has to be kept.
template <class Stored, class Blend>
void blend_parts(const std::vector<uint8_t*>& rows, size_t bytes, const std::vector<double>& own,
                 const Blend& blend_part) {
  constexpr size_t kPart = 2048;
  std::array<Stored, kPart> last;
  const size_t values = bytes / sizeof(Stored);
  const auto at = [&](size_t row, size_t first) {
    return reinterpret_cast<Stored*>(rows[row]) + first;
  };
  for (size_t first = 0; first < values; first += kPart) {
    const size_t count = std::min(kPart, values - first);
    std::copy_n(at(rows.size() - 1, first), count, last.data());
    for (size_t row = rows.size(); row-- > 0;) {
      const Stored* const partner = row > 0 ? at(row - 1, first) : last.data();
      blend_part(partner, at(row, first), count, static_cast<float>(own[row]),
                 static_cast<float>(1.0 - own[row]));
    }
  }
}

bool is_float(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

}  // namespace

void blend_rows(const std::vector<uint8_t*>& rows, size_t bytes, DType dtype,
                const std::vector<double>& own) {
  switch (dtype) {
    case DType::kUInt8:
      return blend_parts<uint8_t>(rows, bytes, own, blend<MixedBytes>);
    case DType::kFloat16:
      return blend_parts<uint16_t>(rows, bytes, own, blend<MixedFloat16>);
    case DType::kBFloat16:
      return blend_parts<uint16_t>(rows, bytes, own, blend<MixedBFloat16>);
    default:
      return blend_parts<float>(rows, bytes, own, blend<MixedFloat32>);
  }
}

std::optional<Spec> MixingOp::beforehand(const FieldState& field) const {
  if (field.kind != FieldKind::kLabel) return {};
  if (field.dtype == DType::kFloat32) {  // already encoded by another transform
    if (options_.classes > 0 && field.shape != Shape{options_.classes}) {
      raise_invalid_argument(name_, "num_classes is " + std::to_string(options_.classes) +
                                        ", but \"" + field.name + "\" is " + text_of(field) +
                                        " already");
    }
    return {};
  }
  if (options_.classes == 0) {
    raise_invalid_argument(
        name_, "mixes labels, but the number of classes of \"" + field.name + "\" is unknown",
        "set num_classes=N, the largest label plus one; or fields=\"image\" to leave labels "
        "unchanged");
  }
  return Spec{"OneHot",
              {{"num_classes", options_.classes}, {"label_smoothing", options_.smoothing}},
              {field.name},
              {}};
}

void MixingOp::plan(const FieldState& field) const {
  const std::string what = "\"" + field.name + "\" is " + text_of(field) + " here";
  if (field.kind == FieldKind::kLabel) return;  // beforehand() makes the encoding
  if (field.kind == FieldKind::kTensor) {
    if (field.dtype == DType::kFloat32) return;
    raise_invalid_argument(name_, "mixes float32 targets, but " + what);
  }
  if (field.kind != FieldKind::kImage) {
    raise_invalid_argument(name_, "mixes images and their labels, but \"" + field.name +
                                      "\" is a " + std::string(name_of(field.kind)) + " field");
  }
  if (is_float(field.dtype) || (options_.uint8 && field.dtype == DType::kUInt8)) return;
  raise_invalid_argument(name_, "mixes floating-point images, but " + what,
                         field.dtype == DType::kUInt8
                             ? "put ToDtype(\"float32\", scale=True) before it, or pass uint8=True"
                             : "");
}

Result<Size> MixingOp::common_image_size(const GroupContext& context) const {
  std::optional<Size> common;
  for (const GroupField& field : context.fields) {
    if (field.state->kind != FieldKind::kImage) continue;
    const Shape& shape = field.state->shape;
    const Size size{static_cast<int>(shape[1]), static_cast<int>(shape[2])};
    if (common && *common != size) {
      return Error{.code = &kMixedSizes,
                   .what = "\"" + field.state->name + "\" has a different size"};
    }
    common = size;
  }
  return common.value_or(Size{1, 1});
}

Result<void> MixingOp::apply(GroupContext& context) const {
  const Result<Size> size = common_image_size(context);
  if (!size) return size.error();
  std::vector<Mix> mixes;
  std::vector<double> own;
  // Draws for every position in the group, including those without a row.
  Mix mix;
  const int64_t begin = context.positions.front() / options_.group * options_.group;
  for (int64_t position = begin, row = 0; row < std::ssize(context.positions); ++position) {
    if (position == begin || options_.per_record) mix = draw(context.draws, options_.alpha, *size);
    if (position != context.positions[size_t(row)]) continue;
    ++row;
    mixes.push_back(mix);
    own.push_back(mix.own);
  }
  for (const GroupField& field : context.fields) {
    if (field.there) {
      for (const Mix& each : mixes) field.there->push_back(row_mix(each, *size));
    } else if (field.state->kind == FieldKind::kImage) {
      mix_images(field, mixes, context.format);
    } else {
      blend_rows(field.rows, field.row_bytes, field.state->dtype, own);
    }
  }
  return {};
}

std::vector<Param> mixing_params(std::string_view what_uint8_does) {
  return {
      {.name = "alpha",
       .type = ParamType::kFloat,
       .doc = "Alpha of the Beta(alpha, alpha) distribution of the mixing weights.",
       .fallback = 1.0,
       .minimum = 1e-6,
       .maximum = 1e6},
      {.name = "num_classes",
       .type = ParamType::kInt,
       .doc = "Number of classes; None if labels are already float32 vectors.",
       .minimum = 1,
       .maximum = 1 << 24},
      {.name = "group",
       .type = ParamType::kInt,
       .doc = "Number of consecutive positions of the epoch that are mixed with each other. A "
              "rank's batch size must be a multiple of it.",
       .fallback = int64_t{8},
       .minimum = 1,
       .maximum = 1 << 20},
      {.name = "per_record",
       .type = ParamType::kBool,
       .doc = "Whether each record has its own draw; otherwise the records of a group share one.",
       .fallback = false},
      {.name = "label_smoothing",
       .type = ParamType::kFloat,
       .doc = "Label smoothing: this fraction of a label is spread evenly over all classes, before "
              "labels are mixed.",
       .fallback = 0.0,
       .minimum = 0,
       .maximum = 1},
      {.name = "uint8", .type = ParamType::kBool, .doc = what_uint8_does, .fallback = false}};
}

MixingOptions mixing_options(const Arguments& arguments) {
  return {.alpha = arguments.number("alpha"),
          .classes = arguments.is_none("num_classes") ? 0 : arguments.integer("num_classes"),
          .smoothing = arguments.number("label_smoothing"),
          .group = arguments.integer("group"),
          .per_record = arguments.flag("per_record"),
          .uint8 = arguments.flag("uint8")};
}

}  // namespace headrace
