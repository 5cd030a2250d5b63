// SPDX-License-Identifier: Apache-2.0
// Shared by operators on rows: boxes and keypoints as they are, and rows that go together
// (Note [Row steps] in op.h). sanitize_bounding_boxes.cc is the one to copy.
#pragma once

#include <string_view>
#include <vector>

#include "headrace/ops/picture_op.h"

namespace headrace {

// Acts on the fields of one kind, which lie on a canvas, and changes neither shape nor dtype unless
// it says so. Pictures are looked at alone, and other fields only lose rows.
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

// One that drops rows of the field that it decides by, and with them those of its row group.
class RowFilter : public RowOp {
 public:
  using RowOp::RowOp;
  bool changes_rows() const final { return true; }
  bool decides_by(FieldKind kind) const final { return takes(kind); }
  Result<void> apply(OpContext& context) const final;

 protected:
  // The rows that stay.
  virtual std::vector<bool> kept(const FieldValue& rows, Size canvas) const = 0;
};

// The field that a step decides by, of a row step among its row group; null where only pictures are
// there (Plan::passes).
FieldValue* deciding_rows(const OpContext& context, FieldKind kind);

// The rows that stay, of every field of the row group.
void keep_rows(OpContext& context, const std::vector<bool>& kept);

// HR0510 unless the boxes are (..., 4) of pixels in a known format and of a dtype that moves.
void check_boxes(std::string_view owner, const FieldState& field);
// The same of keypoints of (..., 2 or more).
void check_points(std::string_view owner, const FieldState& field);
// HR0510 unless the field is (rows, 4), so that a row is a box.
void check_box_rows(std::string_view owner, const FieldState& field);

// The reason in Op::cannot_move for rotated boxes, for operators that compute with upright ones.
std::string why_not_rotated(std::string_view owner, const FieldState& follower);

}  // namespace headrace
