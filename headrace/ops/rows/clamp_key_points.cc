// SPDX-License-Identifier: Apache-2.0
// ClampKeyPoints: moves points outside of the image onto its outermost pixels.
#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/fields/coordinates.h"
#include "headrace/ops/row_op.h"

namespace headrace {
namespace {

template <class Number>
Number on_canvas(Number at, int last) {
  using Real = RealOf<Number>;
  const Real exact = static_cast<Real>(at), most = static_cast<Real>(last);
  return number_from<Number>(exact < 0 ? 0 : exact > most ? most : exact);  // NaN stays
}

class ClampKeyPoints final : public RowOp {
 public:
  ClampKeyPoints() : RowOp(FieldKind::kKeypoints) {}

  Result<void> apply(OpContext& context) const override {
    Result<Size> canvas = common_size(context);
    if (!canvas) return std::move(canvas.error());
    for (const int field : context.fields) {
      FieldValue& value = context.record.fields[field];
      if (value.kind == FieldKind::kKeypoints) clamp(value, *canvas);
    }
    return {};
  }

 private:
  void plan_rows(FieldState& points) const override { check_points("ClampKeyPoints", points); }

  static void clamp(FieldValue& value, Size canvas) {
    const auto numbers = static_cast<size_t>(value.shape.back());
    change_coordinates(value, [&](auto points) {
      for (size_t at = 0; at + numbers <= points.size(); at += numbers) {
        points[at] = on_canvas(points[at], canvas.width - 1);
        points[at + 1] = on_canvas(points[at + 1], canvas.height - 1);
      }
    });
  }
};

const OpRecord kClampKeyPoints{
    .name = "ClampKeyPoints",
    .doc =
        "Moves keypoints outside of the image onto its outermost pixels.\n\n"
        "Keypoints, (..., 2 or more): x to 0 ... W - 1, y to 0 ... H - 1; other numbers, shape "
        "and dtype are unchanged.",
    .page = {.unseen = "it changes only points: [detection](detection.md)"},
    .params = {},
    .oracle = "torchvision v2's clamp_keypoints, bit for bit",
    .make = [](const Arguments&) -> std::unique_ptr<Op> {
      return std::make_unique<ClampKeyPoints>();
    }};
const Register<OpRecord> registered_clamp_points(kClampKeyPoints);

}  // namespace
}  // namespace headrace
