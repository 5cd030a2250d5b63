// SPDX-License-Identifier: Apache-2.0
// ClampBoundingBoxes and SetClampingMode: clipping at the image's edges, now and after later steps.
#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/fields/boxes.h"
#include "headrace/ops/row_op.h"

namespace headrace {
namespace {

class ClampBoundingBoxes final : public RowOp {
 public:
  explicit ClampBoundingBoxes(const std::string& mode) : RowOp(FieldKind::kBoxes) {
    if (mode != "auto") always_ = clamping_from_name(mode);
  }

  Result<void> apply(OpContext& context) const override {
    Result<Size> canvas = common_size(context);
    if (!canvas) return std::move(canvas.error());
    for (const int field : context.fields) {
      FieldValue& value = context.record.fields[field];
      if (value.kind == FieldKind::kBoxes) {
        clamp_boxes(value, *canvas, always_.value_or(value.clamping));
      }
    }
    return {};
  }

 private:
  void plan_rows(FieldState& boxes) const override { check_boxes("ClampBoundingBoxes", boxes); }
  std::optional<Clamping> always_;
};

class SetClampingMode final : public RowOp {
 public:
  explicit SetClampingMode(const std::string& mode)
      : RowOp(FieldKind::kBoxes), clamping_(clamping_from_name(mode)) {}
  bool wants_canvas(const FieldState&) const override { return false; }

  Result<void> apply(OpContext& context) const override {
    for (const int field : context.fields) {
      FieldValue& value = context.record.fields[field];
      if (value.kind == FieldKind::kBoxes) value.clamping = clamping_;
    }
    return {};
  }

 private:
  void plan_rows(FieldState& boxes) const override { boxes.clamping = clamping_; }
  const Clamping clamping_;
};

const OpRecord kClampBoundingBoxes{
    .name = "ClampBoundingBoxes",
    .doc =
        "Moves box corners that are outside of the image onto its edge.\n\n"
        "Boxes in pixels, (..., 4), or rotated boxes, in a known format; shape and dtype are "
        "unchanged. Transforms that crop images do this by themselves; this is for boxes that "
        "were annotated beyond the edge.",
    .page = {.unseen = "it changes only boxes: [detection](detection.md)"},
    .params =
        {{.name = "clamping_mode",
          .type = ParamType::kString,
          .doc = "\"auto\" is the mode set by SetClampingMode, by default \"soft\"; \"soft\" and "
                 "\"hard\" are the same for boxes that are not rotated. For rotated boxes, "
                 "\"soft\" gives the smallest box of that angle around the part inside the image, "
                 "and \"hard\" a box entirely inside it; \"none\" leaves boxes unchanged "
                 "(torchvision's None).",
          .fallback = std::string("auto"),
          .choices = {"auto", "soft", "hard", "none"}}},
    .oracle =
        "torchvision v2's clamp_bounding_boxes, bit for bit; for rotated boxes except for the "
        "last bits of sines",
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<ClampBoundingBoxes>(arguments.text("clamping_mode"));
    }};
const Register<OpRecord> registered_clamp_boxes(kClampBoundingBoxes);

const OpRecord kSetClampingMode{
    .name = "SetClampingMode",
    .doc =
        "Sets whether later transforms that crop images clamp boxes to them.\n\n"
        "Boxes, (..., 4), or rotated ones; values are unchanged here. By default, transforms "
        "clamp. With \"none\", a box keeps its size and may extend beyond the image until a "
        "ClampBoundingBoxes(\"hard\") or a SanitizeBoundingBoxes.",
    .page = {.unseen = "it changes only boxes: [detection](detection.md)"},
    .params = {{.name = "clamping_mode",
                .type = ParamType::kString,
                .doc =
                    "\"soft\" and \"hard\" clamp, with the same result unless boxes are rotated; "
                    "\"none\" (torchvision's None) does not.",
                .required = true,
                .choices = {"soft", "hard", "none"}}},
    .oracle = "torchvision v2's SetClampingMode",
    .example = {{"clamping_mode", std::string("none")}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<SetClampingMode>(arguments.text("clamping_mode"));
    }};
const Register<OpRecord> registered_clamping_mode(kSetClampingMode);

}  // namespace
}  // namespace headrace
