// SPDX-License-Identifier: Apache-2.0
// Shared by operators on pictures: one draw, then the same on every picture of the record.
//
// A geometric operator decides on a Geometry, and `follow` lets every field of the step follow it:
// pictures, and what lies in their coordinates (fields/kind.h).
#pragma once

#include <span>
#include <vector>

#include "headrace/fields/geometry.h"
#include "headrace/ops/op.h"

namespace headrace {

// Acts on images and masks alike, and changes neither shape nor dtype unless it says so.
class PictureOp : public Op {
 public:
  bool takes(FieldKind kind) const override;
  // Masks take part in geometry only; colors and dtypes are for images alone.
  bool moves() const final { return takes(FieldKind::kMask); }
  void plan(FieldState& field) const override;

 protected:
  // The state of an image or mask afterwards.
  virtual void plan_picture(FieldState& picture) const { (void)picture; }
};

// The size that all pictures of the step have; HR0501 when they differ.
Result<Size> common_size(const OpContext& context);
// The same where anything else follows them, which has one canvas; where nothing does, anything.
Result<Size> canvas_of(const OpContext& context);

// One field follows. `canvas`: what it lies on, if it is not a picture.
Result<void> follow(OpContext& context, int field, Size canvas, const Geometry& geometry);
// Every field of the step follows. REQUIRES: the step has a picture.
Result<void> follow(OpContext& context, const Geometry& geometry);

// The same where what is done depends on the field's kind: `decide(kind)` gives a Geometry.
template <class Decide>
Result<void> follow_by_kind(OpContext& context, Decide&& decide) {
  Result<Size> canvas = canvas_of(context);
  if (!canvas) return std::move(canvas.error());
  for (const int field : context.fields) {
    const Geometry geometry = decide(context.record.fields[field].kind);
    if (Result<void> done = follow(context, field, *canvas, geometry); !done) return done;
  }
  return {};
}

// The same where what is done depends on a picture's size: `decide(size)` gives a Result<Geometry>.
// Pictures may differ in size as long as nothing else is to follow them; else HR0501.
template <class Decide>
Result<void> follow_by_size(OpContext& context, Decide&& decide) {
  Result<Size> canvas = canvas_of(context);
  if (!canvas) return std::move(canvas.error());
  for (const int field : context.fields) {
    const FieldValue& value = context.record.fields[field];
    const Size size = is_picture(value.kind) ? value.picture.size() : *canvas;
    Result<Geometry> geometry = decide(size);
    if (!geometry) return std::move(geometry.error());
    if (Result<void> done = follow(context, field, size, *geometry); !done) return done;
  }
  return {};
}

// The same step on every field, all of them pictures.
template <class Step>
Result<void> edit_all(OpContext& context, Step&& step) {
  for (int field : context.fields) {
    if (Result<void> done = edit(context, field, step); !done) return done;
  }
  return {};
}

// HR0512 unless `fill` has one value or one a channel, and each is a value of the picture's dtype.
// `name`: of the parameter.
void check_fill(std::string_view owner, const std::vector<double>& fill, const FieldState& picture,
                std::string_view name = "fill");

// torchvision's forms of a size: one number for a square, or (height, width).
Size size_from(const std::vector<int64_t>& size);
// The parameter `size`, which must be given.
Param size_param(std::string_view doc = "Pixels: one number for a square, or (height, width).");

// One number for all borders; left/right and top/bottom; or left, top, right, bottom.
Borders borders_from(std::string_view owner, const std::vector<int64_t>& padding);

// The parameter `padding_mode`.
Param padding_mode_param();
Padding padding_from(std::string_view padding_mode);
// The reason in Op::cannot_move: as in torchvision, boxes and points have no position in a border
// that repeats the picture.
std::string why_not_padded(Padding padding, const FieldState& follower);

// The filter of the parameter `interpolation`.
Filter filter_from(std::string_view interpolation);
// By the parameters `interpolation` and `antialias`: HR0513 for a filter that has no form without.
Filter filter_from(std::string_view owner, const Arguments& arguments);
// HR0513 where such a filter would meet floats, which torch weighs in another way.
void check_filter(std::string_view owner, Filter filter, const FieldState& picture);

// Parameters that several operators have.
Param interpolation_param();
Param antialias_param();

// The value of masks around a picture that an operator puts on a larger canvas.
Param mask_fill_param();
// The same where masks get the value of `fill` unless it is given.
Param own_mask_fill_param();
std::vector<double> own_mask_fill(const Arguments& arguments);
// HR0512 as check_fill, of images for `fill` and of masks for `mask_fill`.
void check_border(std::string_view owner, const std::vector<double>& fill,
                  const std::vector<double>& mask_fill, const FieldState& picture);
// `fill` or `mask_fill`, as the field is one.
std::span<const double> border_of(FieldKind kind, std::span<const double> fill,
                                  std::span<const double> mask_fill);

// "480 x 640": height first.
std::string text_of(Size size);
// Whether so many pixels are more than a step may make.
inline bool too_large(int64_t height, int64_t width) { return height * width > int64_t{1} << 28; }
// A record's own error. HR0503.
Error grown_too_large(std::string_view owner, Size from, int64_t height, int64_t width,
                      std::string hint = {});

// Throws HR0510: parameters that do not fit together, or do not fit the picture.
[[noreturn]] void raise_misfit(std::string_view owner, const std::string& what,
                               const std::string& hint = {});

// A record's own error: the picture is smaller than the step needs. HR0502.
Error too_small(std::string_view owner, Size picture, Size needed, std::string hint);

}  // namespace headrace
