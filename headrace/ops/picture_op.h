// SPDX-License-Identifier: Apache-2.0
// Shared by operators on pictures: draws once, then applies the same operation to every picture of
// the record.
//
// A geometric operator decides on a Geometry, and `follow` applies it to every field of the step:
// pictures, and fields in their coordinates (fields/kind.h).
#pragma once

#include <span>
#include <vector>

#include "headrace/fields/geometry.h"
#include "headrace/ops/op.h"

namespace headrace {

// Acts on images and masks in the same way, and keeps shape and dtype unless it overrides this.
class PictureOp : public Op {
 public:
  bool takes(FieldKind kind) const override;
  // Masks take part in geometry only; colors and dtypes apply only to images.
  bool moves() const final { return takes(FieldKind::kMask); }
  void plan(FieldState& field) const override;

 protected:
  // The state of an image or mask afterwards.
  virtual void plan_picture(FieldState& picture) const { (void)picture; }
};

// The size that all pictures of the step have; HR0501 if they differ.
Result<Size> common_size(const OpContext& context);
// The same if other fields follow them, which have one canvas; otherwise sizes may differ.
Result<Size> canvas_of(const OpContext& context);

// Applies a geometry to one field. `canvas`: the picture size if the field is not a picture.
Result<void> follow(OpContext& context, int field, Size canvas, const Geometry& geometry);
// Applies a geometry to every field of the step. REQUIRES: the step has a picture.
Result<void> follow(OpContext& context, const Geometry& geometry);

// The same if the geometry depends on the field's kind: `decide(kind)` returns it.
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

// The same if the geometry depends on a picture's size: `decide(size)` returns a Result<Geometry>.
// Pictures may differ in size unless another field has to follow them; then HR0501.
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

// The same edit on every field, all of them pictures.
template <class Step>
Result<void> edit_all(OpContext& context, Step&& step) {
  for (int field : context.fields) {
    if (Result<void> done = edit(context, field, step); !done) return done;
  }
  return {};
}

// HR0512 unless `fill` has one value or one per channel, each valid for the picture's dtype.
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
// The reason for Op::cannot_move: as in torchvision, boxes and points have no position in a border
// that repeats the picture.
std::string why_not_padded(Padding padding, const FieldState& follower);

// The filter of the parameter `interpolation`.
Filter filter_from(std::string_view interpolation);
// From the parameters `interpolation` and `antialias`: HR0513 for a filter without a
// non-antialiased form.
Filter filter_from(std::string_view owner, const Arguments& arguments);
// HR0513 if such a filter would be applied to floats, which torch weights differently.
void check_filter(std::string_view owner, Filter filter, const FieldState& picture);

// Parameters that several operators have.
Param interpolation_param();
Param antialias_param();

// The value of masks outside a picture that an operator places on a larger canvas.
Param mask_fill_param();
// The same if masks default to the value of `fill`.
Param own_mask_fill_param();
std::vector<double> own_mask_fill(const Arguments& arguments);
// check_fill() for `fill` on images and `mask_fill` on masks; HR0512.
void check_border(std::string_view owner, const std::vector<double>& fill,
                  const std::vector<double>& mask_fill, const FieldState& picture);
// `fill` or `mask_fill`, depending on the field's kind.
std::span<const double> border_of(FieldKind kind, std::span<const double> fill,
                                  std::span<const double> mask_fill);

// "480 x 640": height first.
std::string text_of(Size size);
// Whether a step may not make this many pixels.
inline bool too_large(int64_t height, int64_t width) { return height * width > int64_t{1} << 28; }
// An error of the record. HR0503.
Error result_too_large(std::string_view owner, Size from, int64_t height, int64_t width,
                       std::string hint = {});

// The resize of a picture of this size. HR0503 if it would grow too large; `hint` says how to limit
// it.
Result<Geometry> resized_to(std::string_view owner, Size from, int64_t height, int64_t width,
                            Filter filter, std::string_view hint = {});

// Throws HR0510: parameters that are inconsistent, or do not fit the picture.
[[noreturn]] void raise_invalid_argument(std::string_view owner, const std::string& what,
                                         const std::string& hint = {});

// An error of the record: the picture is smaller than the step needs. HR0502.
Error too_small(std::string_view owner, Size picture, Size needed, std::string hint);

}  // namespace headrace
