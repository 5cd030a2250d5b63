// SPDX-License-Identifier: Apache-2.0
// Blends 8-bit rows with their 3 x 3 blur, as torchvision and Pillow sharpen. Any thread may call
// them. They may read and write up to 63 bytes past `width` of the row and of `out`.
#pragma once

#include <cstdint>

#include "headrace/kernels/color/blend_rows.h"

namespace headrace {

// The input rows around a pixel: above it, at it, and below it.
struct ThreeRows {
  const uint8_t *above, *row, *below;
};

// Writes out[1 .. width - 2]; the caller then fills the first and last column, which have no blur.
// Equals adjust_sharpness of torchvision v2 on tensors. `rest`: float(1.0 - factor).
void sharpen_row(const ThreeRows& in, int width, float rest, uint8_t* out);
// The same, equal to Pillow's ImageEnhance.Sharpness.
void sharpen_row_as_pillow(const ThreeRows& in, int width, const PillowBlend& blend, uint8_t* out);

}  // namespace headrace
