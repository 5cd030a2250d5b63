// SPDX-License-Identifier: Apache-2.0
// Shared by operators on rows: boxes and keypoints themselves, and rows that belong together (Note
// [Row steps] in op.h). Use sanitize_bounding_boxes.cc as a template.
#pragma once

#include <string_view>
#include <vector>

#include "headrace/ops/picture_op.h"

namespace headrace {

// Acts on the fields of one kind, which belong to a canvas, and keeps shape and dtype unless it
// overrides this. Pictures are only read, and other fields only lose rows.
class RowOp : public Op {
 public:
  explicit RowOp(FieldKind kind) : kind_(kind) {}
  bool takes(FieldKind kind) const final { return kind == kind_; }
  void plan(FieldState& field) const final {
    if (field.kind == kind_) plan_rows(field);
  }
  bool wants_canvas(const FieldState& field) const override { return field.kind == kind_; }

 protected:
  virtual void plan_rows(FieldState& field) const = 0;

 private:
  const FieldKind kind_;
};

// An operator that drops rows of the field by which it decides, and with them those of its row
// group.
class RowFilter : public RowOp {
 public:
  using RowOp::RowOp;
  bool changes_rows() const final { return true; }
  bool decides_by(FieldKind kind) const final { return takes(kind); }
  Result<void> apply(OpContext& context) const final;

 protected:
  // Which rows to keep.
  virtual std::vector<bool> kept(const FieldValue& rows, Size canvas) const = 0;
};

// The field of the row group by which a row step decides; null if there are only pictures
// (Plan::passes).
FieldValue* deciding_rows(const OpContext& context, FieldKind kind);

// Keeps these rows in every field of the row group.
void keep_rows(OpContext& context, const std::vector<bool>& kept);

// HR0510 unless the boxes are (..., 4) in pixels, in a known format and a supported dtype.
void check_boxes(std::string_view owner, const FieldState& field);
// The same for keypoints of (..., 2 or more).
void check_points(std::string_view owner, const FieldState& field);
// HR0510 unless the field is (rows, 4), one box per row.
void check_box_rows(std::string_view owner, const FieldState& field);

// The reason for Op::cannot_move with rotated boxes, for operators that only support upright ones.
std::string why_not_rotated(std::string_view owner, const FieldState& follower);

}  // namespace headrace
