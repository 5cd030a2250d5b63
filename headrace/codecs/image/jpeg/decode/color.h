// SPDX-License-Identifier: Apache-2.0
// Conversions of interleaved 8-bit rows as Pillow does them, to the last bit. Any thread may call
// them. They read and write `count` pixels; input and output must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/codecs/image/stored_rows.h"

namespace headrace {

// convert("L") of an RGB row: 16-bit fixed-point ITU-R 601 weights, rounded.
inline void gray_from_rgb_row(const uint8_t* __restrict rgb, uint8_t* __restrict gray,
                              size_t count) {
  for (size_t i = 0; i < count; ++i) {
    gray[i] = luma_of(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
  }
}

// Converts a row that libjpeg decoded from a four-component file to CMYK or RGB. Like Pillow,
// assumes Adobe's inverted inks.
inline void cmyk_from_adobe_row(const uint8_t* __restrict adobe, uint8_t* __restrict cmyk,
                                size_t count) {
  for (size_t i = 0; i < 4 * count; ++i) cmyk[i] = uint8_t(255 - adobe[i]);
}
inline void rgb_from_adobe_row(const uint8_t* __restrict adobe, uint8_t* __restrict rgb,
                               size_t count) {
  for (size_t i = 0; i < count; ++i) {
    // Pillow: nk = 255 - K, R = clip(nk - C * nk / 255) with the division rounded by shifts.
    const uint32_t white = adobe[4 * i + 3];
    for (size_t c = 0; c < 3; ++c) {
      const uint32_t product = (255u - adobe[4 * i + c]) * white + 128;
      rgb[3 * i + c] = uint8_t(white - (((product >> 8) + product) >> 8));
    }
  }
}

}  // namespace headrace
