// SPDX-License-Identifier: Apache-2.0
// Blends 8-bit rows as Pillow does (Image.blend, ImageEnhance): colors with their gray, pictures
// with their blur. Any thread may call it.
#pragma once

#include <cstdint>

#include "headrace/kernels/color/pixel_math.h"

namespace headrace {

// A blend factor, and integers that give the same result, if there are any: other + floor((slope *
// (value - other) + offset) / 2^21). Note [Whole numbers that blend as floats].
struct PillowBlend {
  float factor = 1;
  int32_t slope = 0, offset = kNone;
  static constexpr int32_t kNone = -1;
};
PillowBlend pillow_blend(float factor);

// May read and write up to 63 bytes past `count` samples of each row. `out` may be either row.
void blend_row_as_pillow(const uint8_t* value, const uint8_t* other, int count,
                         const PillowBlend& blend, uint8_t* out);

}  // namespace headrace
