// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/policies/augmentation.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "headrace/ops/color/color_steps.h"

namespace headrace {
namespace {

using Kind = Augmentation::Kind;
using Unit = Augmentation::Unit;

bool is_geometric(Kind kind) { return kind >= Kind::kShearX && kind <= Kind::kRotate; }

// torch.linspace in float32: from both ends to the middle, with one rounding.
float linspace(double first, double last, int count, int index) {
  const auto begin = static_cast<float>(first), end = static_cast<float>(last);
  const float step = (end - begin) / static_cast<float>(count - 1);
  if (index < count / 2) return std::fma(step, static_cast<float>(index), begin);
  return std::fma(-step, static_cast<float>(count - index - 1), end);
}

// A magnitude as an argument of torchvision's functionals.
double argument_of(Kind kind, double magnitude) {
  if (kind == Kind::kSolarize) return 255.0 * magnitude;
  return kind == Kind::kPosterize ? magnitude : 1 + magnitude;
}

double degrees_of_slope(double slope) { return std::atan(slope) * (180 / std::numbers::pi); }

}  // namespace

std::vector<Augmentation> augmentations(std::span<const Kind> kinds,
                                        const AugmentationScale& scale) {
  std::vector<Augmentation> out;
  for (const Kind kind : kinds) {
    Augmentation made{.kind = kind};
    const auto signed_number = [&](Unit unit, double most) {
      made.unit = unit;
      made.last = most;
      made.has_sign = true;
    };
    switch (kind) {
      case Kind::kShearX:
      case Kind::kShearY:
        signed_number(Unit::kNumber, scale.shear);
        break;
      case Kind::kTranslateX:
        signed_number(scale.translates_pixels ? Unit::kNumber : Unit::kShareOfWidth,
                      scale.translate);
        break;
      case Kind::kTranslateY:
        signed_number(scale.translates_pixels ? Unit::kNumber : Unit::kShareOfHeight,
                      scale.translate);
        break;
      case Kind::kRotate:
        signed_number(Unit::kNumber, scale.degrees);
        break;
      case Kind::kBrightness:
      case Kind::kColor:
      case Kind::kContrast:
      case Kind::kSharpness:
        signed_number(Unit::kNumber, scale.color);
        break;
      case Kind::kPosterize:
        made.unit = Unit::kBits;
        made.first = scale.max_bits;
        made.last = scale.min_bits;
        break;
      case Kind::kSolarize:
        made.unit = Unit::kNumber;
        made.first = 1;
        break;
      default:
        break;
    }
    out.push_back(made);
  }
  return out;
}

double magnitude_of(const Augmentation& augmentation, int bins, int bin, Size canvas) {
  const double first = augmentation.first, last = augmentation.last;
  switch (augmentation.unit) {
    case Unit::kNone:
      return 0;
    case Unit::kNumber:
      return linspace(first, last, bins, bin);
    case Unit::kShareOfWidth:
      return linspace(0, last * canvas.width, bins, bin);
    case Unit::kShareOfHeight:
      return linspace(0, last * canvas.height, bins, bin);
    case Unit::kBits:
      break;
  }
  // In float32, like torch's division of integers.
  const auto a_bit = static_cast<float>((bins - 1) / (first - last));
  return std::nearbyint(static_cast<float>(first) - static_cast<float>(bin) / a_bit);
}

Result<void> recolor(OpContext& context, int field, Kind kind, double argument,
                     Arithmetic arithmetic) {
  const auto compute = [&](const PixelStep& step) {
    return edit(context, field, [&](Recipe& picture) { return picture.compute(step); });
  };
  switch (kind) {
    case Kind::kBrightness:
      return compute(brightness_step(argument));
    case Kind::kColor:
      return compute(saturation_step(argument, arithmetic));
    case Kind::kPosterize:
      return compute(posterize_step(static_cast<int>(argument)));
    case Kind::kSolarize:
      return compute(solarize_step(argument, arithmetic));
    case Kind::kInvert:
      return compute(invert_step());
    default:
      break;
  }
  return do_pass(context, field,
                 kind == Kind::kContrast       ? contrast_pass(argument, arithmetic)
                 : kind == Kind::kAutoContrast ? autocontrast_pass(arithmetic)
                 : kind == Kind::kEqualize     ? equalize_pass()
                                               : sharpness_pass(argument, arithmetic));
}

void check_colors(std::string_view owner, const FieldState& picture) {
  if (picture.kind == FieldKind::kMask) return;
  const int64_t channels = picture.shape[0];
  if ((channels == 1 || channels == 3) && picture.dtype == DType::kUInt8) return;
  raise_invalid_argument(
      owner,
      "works on uint8 images of one or three channels, but \"" + picture.name + "\" is " +
          text_of(picture) + " here",
      picture.dtype == DType::kUInt8 ? "select images with fields=" : "put it before ToDtype");
}

Result<Geometry> AugmentOp::geometry(const DrawnAugmentation& drawn, Size canvas) const {
  const double size = magnitude_of(*drawn.augmentation, drawn.bins, drawn.bin, canvas);
  const double magnitude = drawn.negated ? -size : size;
  AffineArguments by;
  switch (drawn.augmentation->kind) {
    case Kind::kShearX:
      by.shear[0] = degrees_of_slope(magnitude);
      by.center = {0.0, 0.0};
      break;
    case Kind::kShearY:
      by.shear[1] = degrees_of_slope(magnitude);
      by.center = {0.0, 0.0};
      break;
    case Kind::kTranslateX:
      by.translate[0] = std::trunc(magnitude);
      break;
    case Kind::kTranslateY:
      by.translate[1] = std::trunc(magnitude);
      break;
    default:
      return geometry_of(rotation_warp(magnitude, false, {}, canvas, style()), canvas);
  }
  return geometry_of(affine_warp(by, canvas, style()), canvas);
}

Result<void> AugmentOp::augment(OpContext& context, const DrawnAugmentation& drawn) const {
  const Kind kind = drawn.augmentation->kind;
  if (kind == Kind::kIdentity) return {};
  if (is_geometric(kind)) {
    return follow_by_size(context, [&](Size canvas) { return geometry(drawn, canvas); });
  }
  const double size = magnitude_of(*drawn.augmentation, drawn.bins, drawn.bin, {});
  for (const int field : context.fields) {
    if (context.record.fields[field].kind != FieldKind::kImage) continue;
    const double argument = argument_of(kind, drawn.negated ? -size : size);
    Result<void> done = recolor(context, field, kind, argument, arithmetic_);
    if (!done) return done;
  }
  return {};
}

void AugmentOp::plan_picture(FieldState& picture) const {
  WarpOp::plan_picture(picture);
  check_colors(name(), picture);
}

std::vector<Param> with_augment_params(std::vector<Param> own, std::string_view interpolation) {
  std::vector<Param> params = with_warp_params(std::move(own), interpolation);
  for (Param& param : params) {
    if (param.name != "fill") continue;
    param.fallback = {};
    param.doc =
        "Fill for areas outside the image: one number, or one per channel, from 0 to 255. None: 0, "
        "which \"bilinear\" does not blend into edges.";
  }
  return params;
}

}  // namespace headrace
