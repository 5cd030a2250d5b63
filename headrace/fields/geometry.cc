// SPDX-License-Identifier: Apache-2.0
#include "headrace/fields/geometry.h"

namespace headrace {

Size canvas_after(const Geometry::Move& move, Size canvas) {
  return std::visit(
      Cases{[](const Geometry::Crop& crop) { return Size{crop.window.height, crop.window.width}; },
            [](const Geometry::Resize& resize) { return resize.to; },
            [&](const Geometry::Pad& pad) {
              const Borders& add = pad.borders;
              return Size{canvas.height + add.top + add.bottom,
                          canvas.width + add.left + add.right};
            },
            [&](Geometry::Transpose) { return Size{canvas.width, canvas.height}; },
            [](const Warp& warp) { return warp.to; }, [&](auto) { return canvas; }},  // flips
      move);
}

}  // namespace headrace
