// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/warps/warp_op.h"

#include <algorithm>
#include <string>

#include "headrace/ops/color/color_steps.h"

namespace headrace {
namespace {

const ErrorCode kWarpedTooLarge{
    "HR0507", ErrorKind::kResource, "warped image too large",
    "A warp needs the image and its result in memory, but one of them would exceed 268 million "
    "pixels. expand=True makes very long rotated images that large. Nothing was allocated. Resize "
    "or crop first, or omit expand."};
constexpr int64_t kMaxPixels = int64_t{1} << 28;

}  // namespace

WarpOp::WarpOp(std::string_view name, const Arguments& arguments)
    : name_(name),
      interpolation_(filter_from(arguments.text("interpolation"))),
      arithmetic_(arguments.has("arithmetic") ? arithmetic_from(arguments) : Arithmetic::kPillow),
      fill_(arguments.is_none("fill") ? std::vector<double>{} : arguments.numbers("fill")),
      mask_fill_(arguments.has("mask_fill") ? static_cast<double>(arguments.integer("mask_fill"))
                                            : 0) {
  if (interpolation_ == Filter::kBicubic && arithmetic_ == Arithmetic::kTorch) {
    raise_invalid_argument(
        name_,
        "interpolation=\"bicubic\" requires arithmetic=\"pillow\": torchvision has none for "
        "tensors",
        "arithmetic=\"pillow\"");
  }
}

WarpStyle WarpOp::style() const {
  return {.interpolation = interpolation_,
          .arithmetic = arithmetic_,
          .fill = fill_,
          .mask_fill = mask_fill_};
}

Result<void> WarpOp::check_size(Size size) const {
  if (int64_t{size.height} * size.width <= kMaxPixels) return {};
  return Error{.code = &kWarpedTooLarge,
               .what = "[" + std::string(name_) + "] an image of " + text_of(size) +
                       " pixels (height x width)",
               .hint = "put a Resize before it"};
}

Result<Geometry> WarpOp::geometry_of(const Warp& warp, Size canvas) const {
  for (const Size size : {canvas, warp.to}) {
    if (Result<void> fits = check_size(size); !fits) return std::move(fits.error());
  }
  return Geometry().warp(warp);
}

Result<void> WarpOp::pixels_first(OpContext& context) const {
  for (const int field : context.fields) {
    FieldValue& value = context.record.fields[field];
    if (!is_picture(value.kind)) continue;
    if (Result<void> fits = check_size(value.picture.size()); !fits) return fits;
    if (Result<void> made = context.renderer.materialize(value.picture); !made) return made;
  }
  return {};
}

void WarpOp::plan_picture(FieldState& picture) const {
  const bool wide = picture.dtype == DType::kUInt16 || picture.dtype == DType::kFloat32;
  if (picture.dtype != DType::kUInt8 && !wide) {
    raise_invalid_argument(name_,
                           "works on uint8, uint16 and float32, but \"" + picture.name + "\" is " +
                               std::string(name_of(picture.dtype)) + " here",
                           "put it before ToDtype");
  }
  if (picture.kind == FieldKind::kMask) return;
  if (!fill_.empty()) check_fill(name_, fill_, picture);
  const int64_t channels = picture.shape[0];
  if (arithmetic_ == Arithmetic::kPillow && interpolation_ != Filter::kNearest &&
      (wide || channels > 4)) {
    raise_invalid_argument(name_,
                           "Pillow blends up to four uint8 channels, but \"" + picture.name +
                               "\" is " + text_of(picture) + " here",
                           "arithmetic=\"torch\"");
  }
  if (arithmetic_ == Arithmetic::kPillow && interpolation_ != Filter::kNearest && channels >= 0 &&
      channels % 2 == 0) {
    raise_invalid_argument(
        name_,
        "\"" + picture.name + "\" has " + std::to_string(channels) +
            " channels, and Pillow would treat the last one as alpha",
        "use arithmetic=\"torch\" or interpolation=\"nearest\", which treat all channels equally");
  }
}

std::vector<Param> with_warp_params(std::vector<Param> own, std::string_view interpolation) {
  own.push_back(
      {.name = "interpolation",
       .type = ParamType::kString,
       .doc = "Interpolation of pixels. Masks always use nearest, so that no new label appears. "
              "\"bicubic\" is for arithmetic=\"pillow\".",
       .fallback = std::string(interpolation),
       .choices = {"nearest", "bilinear", "bicubic"}});
  own.push_back(
      {.name = "fill",
       .type = ParamType::kFloats,
       .doc = "Fill for areas outside the image: one number, or one per channel, of the image's "
              "dtype (0 to 255 for uint8). None: black. In torchvision's bilinear mode on tensors, "
              "edges are blended with black once for None, but twice for 0.",
       .fallback = int64_t{0},
       .min_count = 1,
       .max_count = kMaxChannels,
       .or_none = true});
  own.push_back({.name = "mask_fill",
                 .type = ParamType::kInt,
                 .doc = "Fill value of masks: a class id.",
                 .fallback = int64_t{0},
                 .minimum = 0,
                 .maximum = 255});
  own.push_back(arithmetic_param());
  return own;
}

std::vector<Param> with_field_params(std::vector<Param> own) {
  std::vector<Param> params = with_warp_params(std::move(own), "bilinear");
  Param& interpolation = *std::ranges::find(params, "interpolation", &Param::name);
  interpolation.doc =
      "Interpolation of pixels. Masks always use nearest, so that no new label appears.";
  interpolation.choices = {"nearest", "bilinear"};
  return params;
}

std::array<double, 2> angles_from(std::string_view owner, std::string_view name,
                                  const std::vector<double>& given) {
  if (given.size() == 1) {
    if (given[0] < 0) {
      raise_invalid_argument(owner, std::string(name) + ": a single number must not be negative",
                             "(smallest, largest) may have any sign");
    }
    return {-given[0], given[0]};
  }
  if (given[0] > given[1]) {
    raise_invalid_argument(owner,
                           std::string(name) + " must be one number, or (smallest, largest)");
  }
  return {given[0], given[1]};
}

std::optional<std::array<double, 2>> center_from(const Arguments& arguments) {
  if (arguments.is_none("center")) return {};
  const std::vector<double>& given = arguments.numbers("center");
  return std::array<double, 2>{given[0], given[1]};
}

Param center_param() {
  return {.name = "center",
          .type = ParamType::kFloats,
          .doc =
              "Center of the transform, (x, y) in pixels from the "
              "upper left corner; None: the image's center.",
          .minimum = -1e6,
          .maximum = 1e6,
          .min_count = 2,
          .max_count = 2};
}

}  // namespace headrace
