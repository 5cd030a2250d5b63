// SPDX-License-Identifier: Apache-2.0
// Affine warps as torchvision's functionals make them: from an angle, a translation, a scale and
// two shears.
#pragma once

#include <array>
#include <optional>

#include "headrace/image/warp.h"

namespace headrace {

// torchvision's functional.affine. Lengths in pixels, angles in degrees; `angle` is clockwise, as
// in affine and unlike rotate.
struct AffineArguments {
  double angle = 0;
  std::array<double, 2> translate{};  // x, y
  double scale = 1;                   // > 0
  std::array<double, 2> shear{};
  std::optional<std::array<double, 2>> center = {};  // x, y from the corner; none: the middle
};
// The outcome has the canvas's size.
Warp affine_warp(const AffineArguments& arguments, Size canvas, const WarpStyle& style);

// torchvision's functional.rotate, `angle` counterclockwise. If it grows, the result holds the
// whole picture; its size may be very large, so the caller compares `to` with what may be
// allocated.
Warp rotation_warp(double angle, bool grows, const std::optional<std::array<double, 2>>& center,
                   Size canvas, const WarpStyle& style);

}  // namespace headrace
