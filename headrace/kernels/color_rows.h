// SPDX-License-Identifier: Apache-2.0
// What colour operators compute from planar rows of 8 bits, as their oracles do it, to the last
// bit. What decoders convert is planar_color.h's.
//
// Any thread may call them. They may read and write up to 63 bytes past `count` samples of each
// row. In and out must not overlap.
#pragma once

#include <cmath>
#include <cstdint>

namespace headrace {

// torchvision's weights of grey, which add up to 0.9999.
inline constexpr float kLumaRed = 0.2989f, kLumaGreen = 0.587f, kLumaBlue = 0.114f;

// Grey as torchvision v2 computes it on tensors: the weighted sum in float32, with the fused
// multiply-adds that torch has there, and what is after the point cut off.
void luma_from_rgb_rows(const uint8_t* const rgb[3], int count, uint8_t* gray);
// The sum itself, of one pixel.
inline float luma_of(float red, float green, float blue) {
  return std::fma(blue, kLumaBlue, std::fma(green, kLumaGreen, red * kLumaRed));
}

}  // namespace headrace
