// SPDX-License-Identifier: Apache-2.0
// Shared by CoarseDropout and GridDropout: a record's rectangles are drawn once and set to one
// value in its images, and in its masks if a value for masks is given.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "headrace/ops/picture_op.h"

namespace headrace {

struct DropoutFill {
  explicit DropoutFill(const Arguments& arguments);
  std::vector<double> image;
  std::optional<double> mask;  // none: masks are unchanged
};

// The parameters `fill`, `fill_mask` and `p` of these operators.
Param dropout_fill_param();
Param dropout_mask_param();
Param dropout_chance_param();

class DropoutOp : public Op {
 public:
  DropoutOp(std::string_view name, const Arguments& arguments)
      : name_(name), fill_(arguments), p_(arguments.number("p")) {}
  bool takes(FieldKind kind) const final {
    return kind == FieldKind::kImage || (kind == FieldKind::kMask && fill_.mask);
  }
  DevicePart device_part() const final { return DevicePart::kPatches; }
  void plan(FieldState& field) const final;
  Result<void> apply(OpContext& context) const final;

 protected:
  // Holes inside a picture of this size; empty ones are ignored. An error makes the record bad.
  virtual Result<std::vector<Window>> holes(Size picture, Draws& draws) const = 0;

 private:
  const std::string_view name_;
  const DropoutFill fill_;
  const double p_;
};

}  // namespace headrace
