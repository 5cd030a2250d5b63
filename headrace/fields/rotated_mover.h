// SPDX-License-Identifier: Apache-2.0
// Applies geometric moves to rotated boxes like torchvision v2: replaces boxes that are no longer
// rectangles with rectangles, and clamps after moves that can push boxes off the canvas.
#pragma once

#include <span>

#include "headrace/fields/coordinates.h"
#include "headrace/fields/rotated_box.h"

namespace headrace {

template <class Real>
class RotatedMover {
 public:
  RotatedMover(std::span<Real> boxes, BoxFormat format, Clamping clamping)
      : boxes_(boxes), format_(format), clamping_(clamping) {}

  void move(const Geometry::Move& by, Size canvas) {
    std::visit(Cases{[&](const Geometry::Crop& crop) {
                       const Size to{crop.window.height, crop.window.width};
                       cut(Real(-crop.window.x), Real(-crop.window.y), to, /*squares=*/true);
                     },
                     [&](const Geometry::Pad& pad) {
                       cut(Real(pad.borders.left), Real(pad.borders.top), canvas_after(pad, canvas),
                           /*squares=*/false);
                     },
                     [&](const Geometry::Resize& resize) { resize_to(resize.to, canvas); },
                     [&](Geometry::FlipHorizontal) { flip(0, Real(canvas.width)); },
                     [&](Geometry::FlipVertical) { flip(1, Real(canvas.height)); },
                     [&](Geometry::Transpose) { transpose(); },
                     [&](const Warp& warp) { warp_to(warp, canvas); }},
               by);
  }

  void clamp(Size canvas) {
    if (clamping_ == Clamping::kNone) return;
    each_as_corners(
        [&](const BoxCorners<Real>& box) { return clamped_rotated(box, canvas, clamping_); });
  }

 private:
  template <class Change>
  void each(const Change& change) {
    const auto numbers = static_cast<size_t>(numbers_of(format_));
    for (size_t at = 0; at + numbers <= boxes_.size(); at += numbers) change(boxes_.data() + at);
  }
  template <class Change>
  void each_as_corners(const Change& change) {
    each([&](Real* box) {
      const BoxCorners<Real> made = change(corners_of_rotated(box, format_));
      convert_rotated(made.data(), BoxFormat::kXYXYXYXY, box, format_);
    });
  }
  BoxCorners<Real> clamped(const BoxCorners<Real>& box, Size canvas) const {
    return clamping_ == Clamping::kNone ? box : clamped_rotated(box, canvas, clamping_);
  }
  bool has_corners() const { return format_ == BoxFormat::kXYXYXYXY; }

  // torchvision restores rectangles from four corners after a crop, but not after a pad.
  void cut(Real x, Real y, Size to, bool squares) {
    each([&](Real* box) {
      for (size_t i = 0; i < (has_corners() ? 8 : 2); i += 2) {
        box[i] += x;
        box[i + 1] += y;
      }
      if (!has_corners() || !squares) return;
      BoxCorners<Real> corners;
      std::copy_n(box, 8, corners.begin());
      std::ranges::copy(rectangle_of(corners), box);
    });
    clamp(to);
  }

  void resize_to(Size to, Size canvas) {
    if (to == canvas) return;
    const Real x = scale_of(to.width, canvas.width), y = scale_of(to.height, canvas.height);
    each_as_corners([&](BoxCorners<Real> box) {
      for (size_t i = 0; i < 8; i += 2) {
        box[i] *= x;
        box[i + 1] *= y;
      }
      return clamped(rectangle_of(box), to);
    });
  }

  // Mirrors along one axis.
  void flip(size_t axis, Real extent) {
    each([&](Real* box) {
      if (has_corners()) {
        for (size_t i = axis; i < 8; i += 2) box[i] = extent - box[i];
        return swap_sides(box);
      }
      if (format_ == BoxFormat::kXYWHR) {  // use the corner at the other end of the side
        const auto [cos, sin] = rotation_by(radians_of(box[4]));
        box[0] += box[2] * cos;
        box[1] -= box[2] * sin;
      }
      box[axis] = extent - box[axis];
      box[4] = axis == 0 ? -box[4] : Real{180} - box[4];
    });
  }

  void transpose() {
    each_as_corners([](BoxCorners<Real> box) {
      for (size_t i = 0; i < 8; i += 2) std::swap(box[i], box[i + 1]);
      swap_sides(box.data());
      return box;
    });
  }

  // Keeps the corners of a mirrored box in the same rotational order.
  static void swap_sides(Real* box) {
    std::swap_ranges(box, box + 2, box + 2);
    std::swap_ranges(box + 4, box + 6, box + 6);
  }

  void warp_to(const Warp& warp, Size canvas) {
    const PointMap<Real> map(warp, canvas);
    if (warp.bends()) return bend(map, warp.to);
    each_as_corners([&](BoxCorners<Real> box) {
      for (size_t i = 0; i < 8; i += 2) {
        const auto to = map(box[i], box[i + 1]);
        box[i] = to[0];
        box[i + 1] = to[1];
      }
      return clamped(rectangle_of(box), warp.to);
    });
  }

  // For elastic warps: moves only the centers.
  void bend(const PointMap<Real>& map, Size to) {
    each([&](Real* box) {
      Real center[5];
      convert_rotated(box, format_, center, BoxFormat::kCXCYWHR);
      const auto moved = map(std::ceil(center[0]), std::ceil(center[1]));
      std::ranges::copy(moved, center);
      convert_rotated(center, BoxFormat::kCXCYWHR, box, format_);
    });
    clamp(to);
  }

  const std::span<Real> boxes_;
  const BoxFormat format_;
  const Clamping clamping_;
};

}  // namespace headrace
