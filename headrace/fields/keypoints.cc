// SPDX-License-Identifier: Apache-2.0
// Keypoints: points of two numbers or more, x and y first, on the canvas of the record's
// pictures.
//
// They follow in their own dtype like torchvision v2's: a flip maps the pixel x to W - 1 - x, and
// nothing is clamped, so points may be outside the picture. Values after x and y (visibility,
// depth) and the order of the points do not change: the left hand of a mirrored picture stays in
// the row of the left hand.
#include "headrace/base/registry.h"
#include "headrace/fields/coordinates.h"
#include "headrace/fields/numbers.h"

namespace headrace {
namespace {

template <class Number>
void move_point(Number& x, Number& y, const Geometry::Move& by, Size canvas) {
  std::visit(Cases{[&](const Geometry::Crop& crop) {
                     x = minus(x, Number(crop.window.x));
                     y = minus(y, Number(crop.window.y));
                   },
                   [&](const Geometry::Pad& pad) {
                     x = plus(x, Number(pad.borders.left));
                     y = plus(y, Number(pad.borders.top));
                   },
                   [&](const Geometry::Resize& resize) {
                     if (resize.to == canvas) return;
                     x = scaled(x, scale_of(resize.to.width, canvas.width));
                     y = scaled(y, scale_of(resize.to.height, canvas.height));
                   },
                   [&](Geometry::FlipHorizontal) { x = minus(Number(canvas.width - 1), x); },
                   [&](Geometry::FlipVertical) { y = minus(Number(canvas.height - 1), y); },
                   [&](Geometry::Transpose) { std::swap(x, y); },
                   [&](const Warp& warp) {
                     using Real = RealOf<Number>;
                     const PointMap<Real> map(warp, canvas);
                     const auto to = map(static_cast<Real>(x), static_cast<Real>(y));
                     x = number_from<Number>(to[0]);
                     y = number_from<Number>(to[1]);
                   }},
             by);
}

std::string keypoints_want(const FieldState& field) {
  if (field.shape.empty() || field.shape.back() < 2) {
    return "only keypoints with at least two numbers each can follow it";
  }
  return is_movable(field.dtype) ? ""
                                 : "only float32, float64, int32 or int64 keypoints can follow it";
}

Result<void> keypoints_follow(const FollowContext& way, FieldValue& value) {
  const auto numbers = static_cast<size_t>(value.shape.back());  // numbers of a point
  change_coordinates(value, [&](auto points) {
    Size canvas = way.canvas;
    for (const Geometry::Move& move : way.geometry.moves()) {
      for (size_t at = 0; at + numbers <= points.size(); at += numbers) {
        move_point(points[at], points[at + 1], move, canvas);
      }
      canvas = canvas_after(move, canvas);
    }
  });
  return {};
}

const KindRecord kKeypoints{
    .name = "keypoints",
    .doc =
        "Points with two or more numbers each; the first two are x and y in pixels. They follow "
        "the record's images; the other numbers are unchanged.",
    .kind = FieldKind::kKeypoints,
    .spatial = true,
    .take = [](Field& field) { return take_numbers(field, FieldKind::kKeypoints); },
    .begin = begin_numbers,
    .follow = keypoints_follow,
    .wants = keypoints_want};
const Register<KindRecord> registered_keypoints(kKeypoints);

}  // namespace
}  // namespace headrace
