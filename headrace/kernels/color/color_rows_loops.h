// SPDX-License-Identifier: Apache-2.0
// The loops of color_rows.cc that both levels have in the same lanes. Included by each level's file
// after its lanes (float_lanes_avx2.h, float_lanes_avx512.h), between its target pragmas. Internal
// to kernels/.
#pragma once

#include "headrace/kernels/color/color_rows.h"
#include "headrace/kernels/color/color_rows_levels.h"

namespace headrace {
namespace {

Floats luma_at(const uint8_t* const rgb[3], int i) {
  const Floats red = product(floats_at(rgb[0] + i), all(kLumaRed));
  const Floats two = fused(floats_at(rgb[1] + i), all(kLumaGreen), red);
  return fused(floats_at(rgb[2] + i), all(kLumaBlue), two);
}

void luma_from_rgb(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  for (int i = 0; i < count; i += 4 * kLanes) {
    Numbers luma[4];
    for (int j = 0; j < 4; ++j) luma[j] = cut_off(luma_at(rgb, i + j * kLanes));
    store_clamped(gray + i, luma);
  }
}

void saturate(const uint8_t* const rgb[3], int count, float factor, float rest,
              uint8_t* const out[3]) {
  const Floats own = all(factor), other = all(rest);
  for (int i = 0; i < count; i += 4 * kLanes) {
    Numbers blended[3][4];
    for (int j = 0; j < 4; ++j) {
      const int at = i + j * kLanes;
      const Floats gray = floor_of(luma_at(rgb, at));
      for (int c = 0; c < 3; ++c) {
        const Floats value = fused(gray, other, product(floats_at(rgb[c] + at), own));
        blended[c][j] = cut_off(least_of(value, all(255.0f)));  // which may be beyond 32 bits
      }
    }
    for (int c = 0; c < 3; ++c) store_clamped(out[c] + i, blended[c]);
  }
}

}  // namespace
}  // namespace headrace
