// SPDX-License-Identifier: Apache-2.0
// Color operators on planar rows of 8 bits, exactly as their references compute them, to the last
// bit. Conversions for decoders are in planar_color.h; operators that map each sample by its value
// alone are tables (table_rows.h).
//
// Any thread may call these functions. They may read and write up to 63 bytes past `count` samples
// of each row. In and out must not overlap, except where noted.
#pragma once

#include <cstdint>

#include "headrace/kernels/color/pixel_math.h"

namespace headrace {

// Blends as Pillow does (Image.blend, ImageEnhance): colors with their gray, images with their
// blur. A blend factor, and integers that give the same result, if there are any: other +
// floor((slope * (value - other) + offset) / 2^21). Note [Whole numbers that blend as floats].
struct PillowBlend {
  float factor = 1;
  int32_t slope = 0, offset = kNone;
  static constexpr int32_t kNone = -1;
};
PillowBlend pillow_blend(float factor);

// `out` may be either row.
void blend_row_as_pillow(const uint8_t* value, const uint8_t* other, int count,
                         const PillowBlend& blend, uint8_t* out);

// Gray as torchvision v2 computes it on tensors: the weighted sum in float32, with torch's fused
// multiply-adds, truncated.
void luma_from_rgb_rows(const uint8_t* const rgb[3], int count, uint8_t* gray);

// Each pixel blended with its gray: adjust_saturation of torchvision v2 on tensors. `rest`:
// float(1.0 - factor).
void adjust_saturation_rows(const uint8_t* const rgb[3], int count, float factor, float rest,
                            uint8_t* const out[3]);
// The same, equal to Pillow's ImageEnhance.Color.
void saturate_rows_as_pillow(const uint8_t* const rgb[3], int count, const PillowBlend& blend,
                             uint8_t* const out[3]);

// Rotates hues by a fraction of the circle, -0.5 to 0.5: adjust_hue of torchvision v2 on tensors,
// via HSV in float32.
void shift_hue_rows(const uint8_t* const rgb[3], int count, float share, uint8_t* const out[3]);
// adjust_hue of torchvision v2 on Pillow images, via 8-bit HSV, by `hues` of 256.
void shift_hue_rows_as_pillow(const uint8_t* const rgb[3], int count, int hues,
                              uint8_t* const out[3]);

// Changes the hue, saturation and value in the 8-bit HSV of OpenCV (hue from 0 to 179):
// hue + hue_add modulo 180; saturation and value times a gain plus an offset, truncated and clamped
// to 0 to 255. Gray pixels stay gray.
struct HsvChange {
  int hue_add = 0;  // 0 to 179
  float saturation_gain = 1, saturation_add = 0;
  float value_gain = 1, value_add = 0;
};

void change_hsv_rows(const uint8_t* const rgb[3], int count, const HsvChange& change,
                     uint8_t* const out[3]);

// Statistics that color operators need before they are applied.
uint64_t sum_of_row(const uint8_t* row, int64_t count);
// Extends the range [least, most] to the values of the row.
void extend_by_row(const uint8_t* row, int64_t count, uint8_t& least, uint8_t& most);
// Adds how often each value occurs.
void count_row(const uint8_t* row, int64_t count, int64_t histogram[256]);

}  // namespace headrace
