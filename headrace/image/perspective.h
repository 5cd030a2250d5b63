// SPDX-License-Identifier: Apache-2.0
// The perspective warp that maps a picture's corners to given points.
#pragma once

#include <array>
#include <optional>

#include "headrace/image/warp.h"

namespace headrace {

// Corners in torchvision's order: left upper, right upper, right lower, left lower; (x, y) of the
// middles of their pixels.
using Corners = std::array<std::array<int, 2>, 4>;

// torchvision's functional.perspective from the picture's corners to `ends`, with the exact numbers
// that torchvision's solver comes to but for its rounding errors. Nothing where no perspective does
// that: a picture of one column, three ends on one line, or a horizon through the origin, which
// torchvision's eight numbers cannot say. REQUIRES: sizes and ends below 2^17.
std::optional<Warp> perspective_warp(const Corners& ends, Size canvas, const WarpStyle& style);

}  // namespace headrace
