// SPDX-License-Identifier: Apache-2.0
#include "headrace/fields/rotated_box.h"

#include <algorithm>

namespace headrace {
namespace {

// Half of an extent along and across the box's angle, which leads from its corner to its center.
template <class Real>
std::array<Real, 2> to_center(const Real* box) {
  const Real w = std::abs(box[2] / Real{-2}), h = std::abs(box[3] / Real{-2});
  const auto [cos, sin] = rotation_by(radians_of(box[4]));
  return {w * cos + h * sin, h * cos - w * sin};
}

template <class Real>
void corners_from_xywhr(const Real* box, Real* to) {
  const Real x = box[0], y = box[1], w = box[2], h = box[3];
  const auto [cos, sin] = rotation_by(radians_of(box[4]));
  const BoxCorners<Real> corners{x,
                                 y,
                                 x + w * cos,
                                 y - w * sin,
                                 x + (w * cos + h * sin),
                                 y - (w * sin - h * cos),
                                 x + h * sin,
                                 y + h * cos};
  std::ranges::copy(corners, to);
}

template <class Real>
Real distance(Real x, Real y) {
  return std::sqrt(x * x + y * y);
}

template <class Real>
void xywhr_from_corners(const Real* c, Real* to) {
  const Real turn = std::atan2(c[1] - c[3], c[2] - c[0]);
  const std::array<Real, 5> box{c[0], c[1], distance(c[2] - c[0], c[3] - c[1]),
                                distance(c[4] - c[2], c[5] - c[3]),
                                turn / static_cast<Real>(M_PI) * Real{180}};
  std::ranges::copy(box, to);
}

}  // namespace

template <class Real>
void convert_rotated(const Real* from, BoxFormat format, Real* to, BoxFormat wanted) {
  if (format == wanted) {
    std::copy_n(from, numbers_of(format), to);
    return;
  }
  Real box[5];  // as kXYWHR
  if (format == BoxFormat::kXYXYXYXY) {
    xywhr_from_corners(from, box);
  } else {
    std::copy_n(from, 5, box);
  }
  if (format == BoxFormat::kCXCYWHR) {
    const auto [x, y] = to_center(box);
    box[0] -= x;
    box[1] -= y;
  }
  if (wanted == BoxFormat::kXYXYXYXY) return corners_from_xywhr(box, to);
  if (wanted == BoxFormat::kCXCYWHR) {
    const auto [x, y] = to_center(box);
    box[0] += x;
    box[1] += y;
  }
  std::copy_n(box, 5, to);
}

template <class Real>
BoxCorners<Real> rectangle_of(const BoxCorners<Real>& p) {
  const Real half_turn = static_cast<Real>(M_PI / 2);
  const Real cx = (p[0] + p[4]) / 2, cy = (p[1] + p[5]) / 2;
  const Real width = distance(p[2] - p[0], p[3] - p[1]);
  const Real height = distance(p[6] - p[0], p[7] - p[1]);
  const Real along = std::atan2(p[1] - p[3], p[2] - p[0]);
  const Real down = std::atan2(p[1] - p[7], p[6] - p[0]);
  const Real sign = along - down > half_turn ? Real{-1} : Real{1};
  const Rotation<Real> between = rotation_by(along - down);
  const Real w = width < height ? width * between.sin : width + height * between.cos * sign;
  const Real h = width > height ? height * between.sin : height + width * between.cos * sign;
  const auto [cos, sin] = rotation_by(height > width ? down + half_turn : along);
  const Real wc = w / 2 * cos, ws = w / 2 * sin, hc = h / 2 * cos, hs = h / 2 * sin;
  return {cx - wc - hs, cy - hc + ws, cx + wc - hs, cy - hc - ws,
          cx + wc + hs, cy + hc - ws, cx - wc + hs, cy + hc + ws};
}

template void convert_rotated(const float*, BoxFormat, float*, BoxFormat);
template void convert_rotated(const double*, BoxFormat, double*, BoxFormat);
template BoxCorners<float> rectangle_of(const BoxCorners<float>&);
template BoxCorners<double> rectangle_of(const BoxCorners<double>&);

}  // namespace headrace
