// SPDX-License-Identifier: Apache-2.0
// Shared by operators that warp a record's pictures: their parameters, the checks of their input,
// and the maximum size of a result. image/warp.h computes the pixels of 8-bit images; masks take
// the nearest pixel.
#pragma once

#include <string_view>
#include <vector>

#include "headrace/image/torchvision_warps.h"
#include "headrace/ops/picture_op.h"

namespace headrace {

class WarpOp : public PictureOp {
 public:
  // Works on pixels in memory, before and after.
  bool measures() const final { return true; }
  size_t scratch_per_pixel() const override { return 4; }  // warp_picture's documentation

 protected:
  // Reads the parameters below from `arguments`. `name`: the name of the operator.
  WarpOp(std::string_view name, const Arguments& arguments);
  std::string_view name() const { return name_; }
  // Borrows from this operator.
  WarpStyle style() const;
  // HR0507 if the picture or the result would be too large; otherwise the geometry that lets a
  // record follow the warp.
  Result<Geometry> geometry_of(const Warp& warp, Size canvas) const;
  Result<void> check_size(Size size) const;
  // Materializes all pictures first, so that expensive decisions are made only once: a step that
  // has to wait for pixels is restarted.
  Result<void> pixels_first(OpContext& context) const;
  void plan_picture(FieldState& picture) const override;

 private:
  const std::string_view name_;
  const Filter interpolation_;
  const Arithmetic arithmetic_;
  const std::vector<double> fill_;
  const double mask_fill_;
};

// Appends interpolation, fill, mask_fill and arithmetic, which every warp has, to an operator's own
// parameters.
std::vector<Param> with_warp_params(std::vector<Param> own, std::string_view interpolation);

// The same for displacement fields, which do not support "bicubic".
std::vector<Param> with_field_params(std::vector<Param> own);

// torchvision's forms of an angle: x for [-x, x], or (smallest, largest).
std::array<double, 2> angles_from(std::string_view owner, std::string_view name,
                                  const std::vector<double>& given);
std::optional<std::array<double, 2>> center_from(const Arguments& arguments);
Param center_param();

}  // namespace headrace
