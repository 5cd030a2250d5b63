// SPDX-License-Identifier: Apache-2.0
// Color operators on planar rows of 8 bits, exactly as their references compute them, to the last
// bit. Conversions for decoders are in planar_color.h; operators that map each sample by its value
// alone are tables (table_rows.h).
//
// Any thread may call them. They may read and write up to 63 bytes past `count` samples of each
// row. In and out must not overlap.
#pragma once

#include <cstdint>

#include "headrace/kernels/color/blend_rows.h"
#include "headrace/kernels/color/pixel_math.h"

namespace headrace {

// Gray as torchvision v2 computes it on tensors: the weighted sum in float32, with torch's fused
// multiply-adds, truncated.
void luma_from_rgb_rows(const uint8_t* const rgb[3], int count, uint8_t* gray);

// Each pixel blended with its gray: adjust_saturation of torchvision v2 on tensors. `rest`:
// float(1.0 - factor).
void saturate_rows(const uint8_t* const rgb[3], int count, float factor, float rest,
                   uint8_t* const out[3]);
// The same, equal to Pillow's ImageEnhance.Color.
void saturate_rows_as_pillow(const uint8_t* const rgb[3], int count, const PillowBlend& blend,
                             uint8_t* const out[3]);

// Rotates hues by a fraction of the circle, -0.5 to 0.5: adjust_hue of torchvision v2 on tensors,
// via HSV in float32.
void turn_hue_rows(const uint8_t* const rgb[3], int count, float share, uint8_t* const out[3]);
// adjust_hue of torchvision v2 on Pillow images, via 8-bit HSV, by `hues` of 256.
void turn_hue_rows_as_pillow(const uint8_t* const rgb[3], int count, int hues,
                             uint8_t* const out[3]);

}  // namespace headrace
