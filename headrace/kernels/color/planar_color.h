// SPDX-License-Identifier: Apache-2.0
// Conversions of planar 8-bit rows: YCbCr as in libjpeg-turbo, gray and CMYK as in Pillow, to the
// last bit.
//
// Any thread may call these functions. They may read and write up to 63 bytes past `count` samples
// of each row. In and out must not overlap.
#pragma once

#include <cstdint>

namespace headrace {

// YCbCr -> RGB (JFIF; libjpeg's 16-bit fixed point).
void rgb_from_ycc_rows(const uint8_t* const ycc[3], int count, uint8_t* const rgb[3]);
// convert("L") of RGB: 16-bit fixed-point ITU-R 601 weights, rounded.
void gray_from_rgb_rows(const uint8_t* const rgb[3], int count, uint8_t* gray);
// convert("RGB") of CMYK, given 255 - K. `rgb` may be the rows of `cmy`.
void rgb_from_cmy_rows(const uint8_t* const cmy[3], const uint8_t* white, int count,
                       uint8_t* const rgb[3]);
// out = 255 - in
void complement_row(const uint8_t* in, int count, uint8_t* out);

}  // namespace headrace
