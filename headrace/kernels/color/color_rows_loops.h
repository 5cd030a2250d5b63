// SPDX-License-Identifier: Apache-2.0
// The loops of color_rows.cc that both levels have in the same lanes. Included by each level's file
// after its lanes (lanes/avx2.h, lanes/avx512.h), between its target pragmas. Internal to kernels/.
#pragma once

#include "headrace/kernels/color/color_rows.h"
#include "headrace/kernels/color/color_rows_levels.h"

namespace headrace::HEADRACE_LEVEL {
namespace {

Floats luma_at(const uint8_t* const rgb[3], int i) {
  const Floats red = Mul(LoadBytesAsFloats(rgb[0] + i), Set(kLumaRed));
  const Floats two = MulAdd(LoadBytesAsFloats(rgb[1] + i), Set(kLumaGreen), red);
  return MulAdd(LoadBytesAsFloats(rgb[2] + i), Set(kLumaBlue), two);
}

void luma_from_rgb(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  for (int i = 0; i < count; i += 4 * kLanes) {
    Ints luma[4];
    for (int j = 0; j < 4; ++j) luma[j] = TruncToInts(luma_at(rgb, i + j * kLanes));
    StoreClamped(gray + i, luma);
  }
}

void saturate(const uint8_t* const rgb[3], int count, float factor, float rest,
              uint8_t* const out[3]) {
  const Floats own = Set(factor), other = Set(rest);
  for (int i = 0; i < count; i += 4 * kLanes) {
    Ints blended[3][4];
    for (int j = 0; j < 4; ++j) {
      const int at = i + j * kLanes;
      const Floats gray = Floor(luma_at(rgb, at));
      for (int c = 0; c < 3; ++c) {
        const Floats value = MulAdd(gray, other, Mul(LoadBytesAsFloats(rgb[c] + at), own));
        blended[c][j] = TruncToInts(Min(value, Set(255.0f)));  // which may be beyond 32 bits
      }
    }
    for (int c = 0; c < 3; ++c) StoreClamped(out[c] + i, blended[c]);
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL
