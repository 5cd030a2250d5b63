// SPDX-License-Identifier: Apache-2.0
// What operators on pictures share: one draw, then the same edit of every picture field.
#pragma once

#include <span>
#include <vector>

#include "headrace/ops/op.h"

namespace headrace {

// Acts on images and masks alike, and changes neither shape nor dtype unless it says so.
class PictureOp : public Op {
 public:
  bool takes(FieldKind kind) const override;
  // What masks take part in is geometry; colours and dtypes are for images alone.
  bool moves() const final { return takes(FieldKind::kMask); }
  void plan(FieldState& field) const final;

 protected:
  // What an image or mask becomes.
  virtual void plan_picture(FieldState& picture) const { (void)picture; }
};

// The same step on every field.
template <class Step>
Result<void> edit_all(OpContext& context, Step&& step) {
  for (int field : context.fields) {
    if (Result<void> done = edit(context, field, step); !done) return done;
  }
  return {};
}

// The size that all pictures of the step have; HR0501 when they differ.
Result<Size> common_size(const OpContext& context);

// Adds borders to one field. `fill` has one value, or one a channel.
Result<void> pad_field(OpContext& context, int field, int left, int top, int right, int bottom,
                       std::span<const double> fill);

// HR0512 unless `fill` has one value or one a channel, and each is a value of the picture's dtype.
// `name`: of the parameter.
void check_fill(std::string_view owner, const std::vector<double>& fill, const FieldState& picture,
                std::string_view name = "fill");

// torchvision's forms of a size: one number for a square, or (height, width).
Size size_from(const std::vector<int64_t>& size);

// One number for all borders; left/right and top/bottom; or left, top, right, bottom.
struct Borders {
  int left = 0, top = 0, right = 0, bottom = 0;
};
Borders borders_from(std::string_view owner, const std::vector<int64_t>& padding);

// The filter of the parameter `interpolation`, and the one that a field of this kind gets: masks
// hold labels, which must not be mixed.
Filter filter_from(std::string_view interpolation);
inline Filter filter_for(FieldKind kind, Filter filter) {
  return kind == FieldKind::kMask ? Filter::kNearest : filter;
}

// Parameters that several operators have.
Param interpolation_param();
Param antialias_param();
// Throws HR0513 for antialias=False.
void require_antialias(std::string_view owner, const Arguments& arguments);

// Throws HR0510: parameters that do not fit together, or do not fit the picture.
[[noreturn]] void raise_misfit(std::string_view owner, const std::string& what,
                               const std::string& hint = {});

// A record's own error: the picture is smaller than the step needs. HR0502.
Error too_small(std::string_view owner, Size picture, Size needed, std::string hint);

}  // namespace headrace
