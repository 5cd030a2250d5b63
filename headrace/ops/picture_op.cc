// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/picture_op.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "headrace/base/number_text.h"

namespace headrace {
namespace {

const ErrorCode kSizesDiffer{
    "HR0501", ErrorKind::kData, "images of a record differ in size",
    "A random crop takes the same window from every image of a record (image and mask), so they "
    "must be equal in size; so must images that share boxes. A mask of a different size is usually "
    "a mix-up of files. Restrict the transform with fields=, or equalize the sizes with a "
    "Resize((height, width)) before it."};

const ErrorCode kTooSmall{
    "HR0502", ErrorKind::kData, "image smaller than the crop",
    "A crop of a fixed size needs an image of at least that size. Pad it (pad_if_needed=True), or "
    "resize it first; CenterCrop pads by itself."};

const ErrorCode kTooLarge{
    "HR0503", ErrorKind::kResource, "resized image too large",
    "A very long and narrow image, resized by its shorter edge, or a large image on a larger "
    "canvas, would exceed 268 million pixels. Nothing was allocated. max_size= of Resize bounds "
    "the longer edge."};

const ErrorCode kInvalidArgument{
    "HR0510", ErrorKind::kConfig, "invalid operator arguments",
    "The operator's parameters contradict each other, or are invalid for the images it receives. "
    "The message names them and says how to fix them."};

const ErrorCode kNoPicture{
    "HR0511", ErrorKind::kConfig, "not an image",
    "The operator works on images and masks; fields= named a field of another kind."};

const ErrorCode kBadFill{
    "HR0512", ErrorKind::kConfig, "invalid fill",
    "fill= is one number, or one per channel, in the range of the image's dtype at that point: 0 "
    "to 255 for uint8. After ToDtype(float32, scale=True) white is 1.0."};

const ErrorCode kNoAliasing{
    "HR0513", ErrorKind::kConfig, "antialias=False not supported",
    "Resize equals Pillow's, which widens the filter when downscaling. antialias=False resizes "
    "like torch without antialiasing, for compatibility with older models: \"nearest\" and "
    "\"nearest-exact\" with any dtype, \"bilinear\" and \"bicubic\" with uint8. torch has no other "
    "filter without antialiasing, and weighs floats differently: omit antialias."};

}  // namespace

std::string text_of(Size size) {
  return std::to_string(size.height) + " x " + std::to_string(size.width);
}

bool PictureOp::takes(FieldKind kind) const { return is_picture(kind); }

void PictureOp::plan(FieldState& field) const {
  if (!is_picture(field.kind)) {
    const KindRecord& kind = record_of(field.kind);
    raise(kNoPicture,
          "\"" + field.name + "\" is a " + std::string(kind.name) +
              " field, and the transform works on images and masks",
          moves() && kind.wants ? kind.wants(field) : "");
  }
  plan_picture(field);
}

Result<Size> common_size(const OpContext& context) {
  std::optional<Size> size;
  for (const int field : context.fields) {
    const FieldValue& value = context.record.fields[field];
    if (!is_picture(value.kind)) continue;
    const Size other = value.picture.size();
    if (!size) size = other;
    if (other == *size) continue;
    return Error{
        .code = &kSizesDiffer,
        .what = "one is " + text_of(*size) + " (height x width), another is " + text_of(other)};
  }
  return *size;
}

Result<Size> canvas_of(const OpContext& context) {
  const bool pictures_alone = std::ranges::all_of(
      context.fields, [&](int field) { return is_picture(context.record.fields[field].kind); });
  return pictures_alone ? Size{} : common_size(context);
}

Result<void> follow(OpContext& context, int field, Size canvas, const Geometry& geometry) {
  FieldValue& value = context.record.fields[field];
  if (!is_spatial(value.kind)) return {};  // a field of the row group
  return record_of(value.kind).follow({geometry, canvas, context.renderer}, value);
}

Result<void> follow(OpContext& context, const Geometry& geometry) {
  Result<Size> canvas = canvas_of(context);
  if (!canvas) return std::move(canvas.error());
  for (const int field : context.fields) {
    if (Result<void> done = follow(context, field, *canvas, geometry); !done) return done;
  }
  return {};
}

void check_fill(std::string_view owner, const std::vector<double>& fill, const FieldState& picture,
                std::string_view name) {
  const std::string subject = "[" + std::string(owner) + "] " + std::string(name) + " ";
  if (fill.size() != 1 && static_cast<int64_t>(fill.size()) != picture.shape[0]) {
    raise(kBadFill,
          subject + "must have one value, or one for each of the " +
              std::to_string(picture.shape[0]) + " channels of \"" + picture.name + "\" (got " +
              std::to_string(fill.size()) + ")",
          picture.kind != FieldKind::kMask ? ""
          : name == "mask_fill"
              ? "a mask has one channel: pass one number, such as mask_fill=0"
              : "a mask has one channel: list the transform twice, with fields=\"image\" and "
                "fields=\"" +
                    picture.name + "\"");
  }
  for (double value : fill) {
    const double most = picture.dtype == DType::kUInt8 ? 255 : 65535;
    const bool fits =
        is_floating(picture.dtype) || (value >= 0 && value <= most && value == std::floor(value));
    if (fits) continue;
    raise(kBadFill, subject + "must be a whole number from 0 to " +
                        std::to_string(static_cast<int>(most)) + ", as \"" + picture.name +
                        "\" is " + std::string(name_of(picture.dtype)) + " here (got " +
                        shortest_text(value) + ")");
  }
}

Size size_from(const std::vector<int64_t>& size) {
  return {static_cast<int>(size[0]), static_cast<int>(size.back())};
}

Borders borders_from(std::string_view owner, const std::vector<int64_t>& padding) {
  const auto at = [&](size_t i) { return static_cast<int>(padding[i]); };
  if (padding.size() == 1) return {at(0), at(0), at(0), at(0)};
  if (padding.size() == 2) return {at(0), at(1), at(0), at(1)};
  if (padding.size() == 4) return {at(0), at(1), at(2), at(3)};
  raise_invalid_argument(
      owner, "padding must have 1, 2 or 4 values (got " + std::to_string(padding.size()) + ")",
      "all borders; left/right and top/bottom; or left, top, right, bottom");
}

Param padding_mode_param() {
  return {.name = "padding_mode",
          .type = ParamType::kString,
          .doc =
              "\"constant\" gives a border the fill; \"edge\" repeats the outermost pixel, "
              "\"reflect\" mirrors the image without repeating the edge pixel, \"symmetric\" "
              "repeats it. The last three render earlier transforms first, and do not support "
              "boxes and keypoints.",
          .fallback = std::string("constant"),
          .choices = {"constant", "edge", "reflect", "symmetric"}};
}

Padding padding_from(std::string_view padding_mode) {
  if (padding_mode == "edge") return Padding::kEdge;
  if (padding_mode == "reflect") return Padding::kReflect;
  return padding_mode == "symmetric" ? Padding::kSymmetric : Padding::kConstant;
}

std::string why_not_padded(Padding padding, const FieldState& follower) {
  if (padding == Padding::kConstant || follower.kind == FieldKind::kMasks) return {};
  return "\"" + follower.name +
         "\" cannot follow: a border that repeats the image repeats its objects, and "
         "only padding_mode=\"constant\" moves " +
         std::string(name_of(follower.kind));
}

Filter filter_from(std::string_view interpolation) {
  if (interpolation == "bicubic") return Filter::kBicubic;
  if (interpolation == "box") return Filter::kBox;
  if (interpolation == "hamming") return Filter::kHamming;
  if (interpolation == "lanczos") return Filter::kLanczos;
  return interpolation == "bilinear" ? Filter::kBilinear : Filter::kNearest;
}

Filter filter_from(std::string_view owner, const Arguments& arguments) {
  const std::string& interpolation = arguments.text("interpolation");
  const Filter filter = filter_from(interpolation);
  if (arguments.flag("antialias")) return filter;
  if (interpolation == "nearest") return Filter::kNearestTorch;
  if (interpolation == "nearest-exact") return Filter::kNearestExactTorch;
  if (filter == Filter::kBilinear) return Filter::kBilinearNoAntialias;
  if (filter == Filter::kBicubic) return Filter::kBicubicNoAntialias;
  raise(kNoAliasing,
        "[" + std::string(owner) + "] \"" + interpolation + "\" does not support antialias=False",
        "omit antialias; \"nearest\", \"nearest-exact\", \"bilinear\" and \"bicubic\" support it");
}

void check_filter(std::string_view owner, Filter filter, const FieldState& picture) {
  if (!is_without_antialias(filter) || picture.kind != FieldKind::kImage ||
      picture.dtype == DType::kUInt8) {
    return;
  }
  raise(kNoAliasing,
        "[" + std::string(owner) + "] antialias=False is for uint8, but \"" + picture.name +
            "\" is " + std::string(name_of(picture.dtype)) + " here",
        "put it before ToDtype, or omit antialias");
}

Param interpolation_param() {
  return {
      .name = "interpolation",
      .type = ParamType::kString,
      .doc =
          "The filter for images. \"nearest\" samples at pixel centers, as in Pillow, so "
          "\"nearest-exact\" gives the same result, except with antialias=False. Masks are always "
          "resized with nearest, so that no new labels appear.",
      .fallback = std::string("bilinear"),
      .choices = {"nearest", "nearest-exact", "bilinear", "bicubic", "box", "hamming", "lanczos"}};
}

Param antialias_param() {
  return {.name = "antialias",
          .type = ParamType::kBool,
          .doc =
              "Whether the filter widens when an image shrinks, as Pillow's does. False: as torch "
              "resizes tensors without antialiasing; uint8 with \"bilinear\" and \"bicubic\", any "
              "dtype with \"nearest\" and \"nearest-exact\". Masks ignore it.",
          .fallback = true};
}

void raise_invalid_argument(std::string_view owner, const std::string& what,
                            const std::string& hint) {
  raise(kInvalidArgument, "[" + std::string(owner) + "] " + what, hint);
}

Param mask_fill_param() {
  return {.name = "mask_fill",
          .type = ParamType::kFloat,
          .doc = "Fill value of masks around the image: often 255, which losses ignore.",
          .fallback = 0.0,
          .minimum = 0,
          .maximum = 255};
}

Param size_param(std::string_view doc) {
  return {.name = "size",
          .type = ParamType::kInts,
          .doc = doc,
          .required = true,
          .minimum = 1,
          .maximum = 1 << 16,
          .min_count = 1,
          .max_count = 2};
}

Param own_mask_fill_param() {
  return {
      .name = "mask_fill",
      .type = ParamType::kFloat,
      .doc =
          "Fill value of masks in the border, often 255, which losses ignore. None: the same as "
          "fill.",
      .minimum = 0,
      .maximum = 255};
}

std::vector<double> own_mask_fill(const Arguments& arguments) {
  if (arguments.is_none("mask_fill")) return arguments.numbers("fill");
  return {arguments.number("mask_fill")};
}

void check_border(std::string_view owner, const std::vector<double>& fill,
                  const std::vector<double>& mask_fill, const FieldState& picture) {
  const bool mask = picture.kind == FieldKind::kMask;
  check_fill(owner, mask ? mask_fill : fill, picture, mask ? "mask_fill" : "fill");
}

std::span<const double> border_of(FieldKind kind, std::span<const double> fill,
                                  std::span<const double> mask_fill) {
  return kind == FieldKind::kMask ? mask_fill : fill;
}

Error result_too_large(std::string_view owner, Size from, int64_t height, int64_t width,
                       std::string hint) {
  return {.code = &kTooLarge,
          .what = "[" + std::string(owner) + "] " + text_of(from) +
                  " pixels (height x width) would become " + std::to_string(height) + " x " +
                  std::to_string(width),
          .hint = std::move(hint)};
}

Result<Geometry> resized_to(std::string_view owner, Size from, int64_t height, int64_t width,
                            Filter filter, std::string_view hint) {
  if (too_large(height, width)) {
    return result_too_large(owner, from, height, width, std::string(hint));
  }
  return Geometry().resize({static_cast<int>(height), static_cast<int>(width)}, filter);
}

Error too_small(std::string_view owner, Size picture, Size needed, std::string hint) {
  return {.code = &kTooSmall,
          .what = "[" + std::string(owner) + "] the crop is " + text_of(needed) +
                  " (height x width), but the image is " + text_of(picture),
          .hint = std::move(hint)};
}

}  // namespace headrace
