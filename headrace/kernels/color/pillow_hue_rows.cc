// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "headrace/kernels/color/color_rows.h"
#include "headrace/kernels/color/pillow_hue_rows_levels.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/lanes/scalar.h"

#define HEADRACE_LEVEL scalar

namespace headrace::HEADRACE_LEVEL {
namespace {

using Doubles = double;

Doubles Set(double v) { return v; }
Floats ToFloats(Doubles v) { return static_cast<Floats>(v); }
Doubles ToDoubles(Floats v) { return v; }
Ints TruncToInts(Doubles v) { return static_cast<Ints>(v); }
Doubles Trunc(Doubles v) { return std::trunc(v); }
Doubles Add(Doubles a, Doubles b) { return a + b; }
Doubles Sub(Doubles a, Doubles b) { return a - b; }
Doubles Mul(Doubles a, Doubles b) { return a * b; }
Doubles Div(Doubles a, Doubles b) { return a / b; }

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

// After its lanes:
#include "headrace/kernels/color/pillow_hue_rows_loops.h"

namespace headrace {
namespace {

PillowSectors make_pillow_sectors() {
  PillowSectors sectors;
  for (int hue = 0; hue < 256; ++hue) {
    const double sixths = static_cast<float>(hue) * 6.0 / 255.0;
    const int number = static_cast<int>(sixths);
    sectors.number[hue] = number % 6;
    sectors.within[hue] = static_cast<float>(sixths - number);
  }
  return sectors;
}

}  // namespace

void turn_hue_rows_as_pillow(const uint8_t* const rgb[3], int count, int hues,
                             uint8_t* const out[3]) {
  static const PillowSectors sectors = make_pillow_sectors();
  static const ByLevel<TurnPillowHue> by_level{scalar::turn_pillow_hue, pillow_hue_avx2(),
                                               pillow_hue_avx512()};
  by_level.in_force()(rgb, count, hues, sectors, out);
}

}  // namespace headrace
