// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for color_rows.cc. Internal to kernels/.
#pragma once

#include <cstdint>

namespace headrace {

struct ColorRowKernels {
  void (*luma_from_rgb)(const uint8_t* const rgb[3], int count, uint8_t* gray);
  // `rest`: of the grey, float(1.0 - factor).
  void (*saturate)(const uint8_t* const rgb[3], int count, float factor, float rest,
                   uint8_t* const out[3]);
  void (*turn_hue)(const uint8_t* const rgb[3], int count, float share, uint8_t* const out[3]);
};

// torchvision's constants, as float32 has them: from 8 bits to 0 to 1, and back to just below 256.
inline constexpr float kUnit = static_cast<float>(1.0 / 255);
inline constexpr float kBytes = static_cast<float>(255 + 1.0 - 1e-3);
inline constexpr float kSixth = static_cast<float>(1.0 / 6);

// Note [Sectors of the hue]: a sixth of the circle says for each channel whether it is the value v,
// p = v (1 - s), q = v (1 - part) or t = v (1 - s + part). So each is v ((1 - s w) + part c) with w
// and c of -1, 0 and 1 from a table, and nothing is rounded but what is rounded in these. A seventh
// entry is for a hue that was rounded up to 1; the eighth is not used.
struct HueSectors {
  float of_saturation[8], of_part[8];
};
inline constexpr HueSectors kHueSectors[3] = {
    {{0, 0, 1, 1, 1, 0, 0, 0}, {0, -1, 0, 0, 1, 0, 0, 0}},
    {{1, 0, 0, 0, 1, 1, 1, 0}, {1, 0, 0, -1, 0, 0, 1, 0}},
    {{1, 1, 1, 0, 0, 0, 1, 0}, {0, 0, 1, 0, 0, -1, 0, 0}}};

// Null where the architecture has no such level.
const ColorRowKernels* color_row_kernels_avx2();
const ColorRowKernels* color_row_kernels_avx512();
const ColorRowKernels* color_row_kernels_neon();

}  // namespace headrace
