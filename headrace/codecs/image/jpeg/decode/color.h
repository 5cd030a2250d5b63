// SPDX-License-Identifier: Apache-2.0
// Conversions of interleaved 8-bit rows as Pillow does them, to the last bit. Any thread may call
// them. They read and write `count` pixels; input and output must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

// convert("L") of an RGB row: 16-bit fixed-point ITU-R 601 weights, rounded.
void gray_from_rgb_row(const uint8_t* rgb, uint8_t* gray, size_t count);

// Converts a row that libjpeg decoded from a four-component file to CMYK or RGB. Like Pillow,
// assumes Adobe's inverted inks.
void cmyk_from_adobe_row(const uint8_t* adobe, uint8_t* cmyk, size_t count);
void rgb_from_adobe_row(const uint8_t* adobe, uint8_t* rgb, size_t count);

}  // namespace headrace
