// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/row_op.h"

#include <algorithm>

#include "headrace/fields/rows.h"

namespace headrace {
namespace {

// The kind's requirements for following a picture, which row steps have as well.
void check_followable(std::string_view owner, const FieldState& field) {
  const std::string wants = record_of(field.kind).wants(field);
  if (wants.empty()) return;
  raise_invalid_argument(owner,
                         "cannot tell where the " + std::string(name_of(field.kind)) + " of \"" +
                             field.name + "\" lie",
                         wants);
}

}  // namespace

FieldValue* deciding_rows(const OpContext& context, FieldKind kind) {
  const std::span<const int> fields = context.rows.empty() ? context.fields : context.rows;
  const auto found = std::ranges::find_if(
      fields, [&](int field) { return context.record.fields[field].kind == kind; });
  return found == fields.end() ? nullptr : &context.record.fields[*found];
}

void keep_rows(OpContext& context, const std::vector<bool>& kept) {
  std::vector<int64_t> rows;
  for (size_t row = 0; row < kept.size(); ++row) {
    if (kept[row]) rows.push_back(static_cast<int64_t>(row));
  }
  if (rows.size() == kept.size()) return;
  for (const int field : context.rows) take_rows(context.record.fields[field], rows);
}

Result<void> RowFilter::apply(OpContext& context) const {
  const auto is_it = [&](int field) { return takes(context.record.fields[field].kind); };
  const auto deciding = std::ranges::find_if(context.rows, is_it);
  if (deciding == context.rows.end()) return {};  // no rows when called by Plan::passes
  Result<Size> canvas = common_size(context);
  if (!canvas) return std::move(canvas.error());
  keep_rows(context, kept(context.record.fields[*deciding], *canvas));
  return {};
}

void check_boxes(std::string_view owner, const FieldState& field) {
  check_followable(owner, field);
}

void check_points(std::string_view owner, const FieldState& field) {
  check_followable(owner, field);
}

void check_box_rows(std::string_view owner, const FieldState& field) {
  check_boxes(owner, field);
  if (field.shape.size() == 2) return;
  raise_invalid_argument(owner,
                         "drops rows of boxes, but \"" + field.name + "\" is " + text_of(field),
                         "boxes of shape (rows, 4)");
}

std::string why_not_rotated(std::string_view owner, const FieldState& follower) {
  if (follower.kind != FieldKind::kBoxes || !is_rotated(follower.box_format)) return {};
  return std::string(owner) + " works on boxes that are not rotated, but \"" + follower.name +
         "\" is " + std::string(name_of(follower.box_format));
}

}  // namespace headrace
