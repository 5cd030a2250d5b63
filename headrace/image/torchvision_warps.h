// SPDX-License-Identifier: Apache-2.0
// Makes warps like torchvision's functionals: affine warps from an angle, a translation, a scale
// and two shears; perspective warps from four corners.
#pragma once

#include <array>
#include <optional>

#include "headrace/image/warp.h"

namespace headrace {

// torchvision's functional.affine. Lengths in pixels, angles in degrees; `angle` is clockwise,
// unlike in functional.rotate.
struct AffineArguments {
  double angle = 0;
  std::array<double, 2> translate{};  // x, y
  double scale = 1;                   // > 0
  std::array<double, 2> shear{};
  // x, y from the upper left corner; empty: the center of the image.
  std::optional<std::array<double, 2>> center = {};
};
// The result has the size of `canvas`.
Warp affine_warp(const AffineArguments& arguments, Size canvas, const WarpStyle& style);

// torchvision's functional.rotate, `angle` counterclockwise. `grows`: the result is large enough
// for the whole rotated picture (expand=True). It may be very large, so the caller has to check
// Warp::to before it allocates memory.
Warp rotation_warp(double angle, bool grows, const std::optional<std::array<double, 2>>& center,
                   Size canvas, const WarpStyle& style);

// A picture's corners in torchvision's order: upper left, upper right, lower right, lower left;
// each is the (x, y) of a pixel's center.
using Corners = std::array<std::array<int, 2>, 4>;

// torchvision's functional.perspective from the picture's corners to `ends`, with exact
// coefficients, where torchvision's solver has rounding errors. Empty if there is no such
// perspective: a picture of one column or row, three collinear ends, or a horizon through the
// origin, which torchvision's eight coefficients cannot represent. REQUIRES: sizes and ends below
// 2^17.
std::optional<Warp> perspective_warp(const Corners& ends, Size canvas, const WarpStyle& style);

}  // namespace headrace
