// SPDX-License-Identifier: Apache-2.0
// The perspective warp that maps a picture's corners to given points.
#pragma once

#include <array>
#include <optional>

#include "headrace/image/warp.h"

namespace headrace {

// Corners in torchvision's order: upper left, upper right, lower right, lower left; each is the (x,
// y) of a pixel's center.
using Corners = std::array<std::array<int, 2>, 4>;

// torchvision's functional.perspective from the picture's corners to `ends`, with exact
// coefficients, where torchvision's solver has rounding errors. Empty if there is no such
// perspective: a picture of one column or row, three collinear ends, or a horizon through the
// origin, which torchvision's eight coefficients cannot represent. REQUIRES: sizes and ends below
// 2^17.
std::optional<Warp> perspective_warp(const Corners& ends, Size canvas, const WarpStyle& style);

}  // namespace headrace
