// SPDX-License-Identifier: Apache-2.0
// The loops of sharpen_rows.cc in lanes. Included by each level's file after its lanes
// (float_lanes_avx2.h, float_lanes_avx512.h), between its target pragmas. Internal to kernels/.
#pragma once

#include "headrace/kernels/sharpen_rows_levels.h"

namespace headrace {
namespace {

Numbers three_at(const uint8_t* row) {
  return sum(sum(numbers_at(row - 1), numbers_at(row)), numbers_at(row + 1));
}

Floats blur_at(const ThreeRows& in, int x, Numbers center) {
  Numbers weighted = sum(three_at(in.above + x), three_at(in.below + x));
  weighted = sum(weighted, sum(three_at(in.row + x), product(center, all(4))));
  const Numbers twice = sum(sum(weighted, weighted), all(13));
  return floats_of(shifted_down<kThirteenthShift>(product(twice, all(kThirteenthFactor))));
}

int as_torch(const ThreeRows& in, int width, float rest, uint8_t* out) {
  int x = 1;
  for (; x + kLanes < width; x += kLanes) {
    const Numbers center = numbers_at(in.row + x);
    const Floats value = floats_of(center);
    store_cut_off(out + x, fused(difference(blur_at(in, x, center), value), all(rest), value));
  }
  return x;
}

int as_pillow(const ThreeRows& in, int width, float factor, uint8_t* out) {
  int x = 1;
  for (; x + kLanes < width; x += kLanes) {
    const Numbers center = numbers_at(in.row + x);
    const Floats blur = blur_at(in, x, center);
    store_cut_off(out + x, sum(blur, product(all(factor), difference(floats_of(center), blur))));
  }
  return x;
}

constexpr SharpenKernels kKernels{as_torch, as_pillow};

}  // namespace
}  // namespace headrace
