// SPDX-License-Identifier: Apache-2.0
// Hues of rows turned as Pillow does (color_rows.h), at each SIMD level. Internal to kernels/.
#pragma once

#include <cstdint>

namespace headrace {

// Pillow's hsv2rgb for each hue: which sixth of the circle it lies in, and where in it.
struct PillowSectors {
  int32_t number[256];
  float within[256];
};

using TurnPillowHue = void (*)(const uint8_t* const rgb[3], int count, int hues,
                               const PillowSectors& sectors, uint8_t* const out[3]);

// Null where the architecture has no such level.
TurnPillowHue pillow_hue_avx2();
TurnPillowHue pillow_hue_avx512();

}  // namespace headrace
