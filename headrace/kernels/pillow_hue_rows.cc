// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "headrace/kernels/color_rows.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/pillow_hue_rows_levels.h"

namespace headrace {
namespace {

// Lanes of one number, for the loop below.
using Floats = float;
using Doubles = double;
using Numbers = int32_t;
constexpr int kLanes = 1;

Numbers all(int v) { return v; }
Doubles all(double v) { return v; }
Numbers numbers_at(const uint8_t* from) { return *from; }
Numbers sum(Numbers a, Numbers b) { return a + b; }
Numbers subtracted(Numbers a, Numbers b) { return a - b; }
Numbers common(Numbers a, Numbers b) { return a & b; }
Numbers most_of(Numbers a, Numbers b) { return std::max(a, b); }
Numbers least_of(Numbers a, Numbers b) { return std::min(a, b); }
bool equal(Numbers a, Numbers b) { return a == b; }
template <class Value>
Value chosen(bool first, Value a, Value b) {
  return first ? a : b;
}
Floats floats_of(Numbers v) { return static_cast<Floats>(v); }
Floats floats_of(Doubles v) { return static_cast<Floats>(v); }
Doubles doubles_of(Floats v) { return v; }
Numbers cut_off(Doubles v) { return static_cast<Numbers>(v); }
Doubles whole_of(Doubles v) { return std::trunc(v); }
Floats difference(Floats a, Floats b) { return a - b; }
Floats product(Floats a, Floats b) { return a * b; }
Floats quotient(Floats a, Floats b) { return a / b; }
Doubles sum(Doubles a, Doubles b) { return a + b; }
Doubles difference(Doubles a, Doubles b) { return a - b; }
Doubles product(Doubles a, Doubles b) { return a * b; }
Doubles quotient(Doubles a, Doubles b) { return a / b; }
template <class Value>
Value looked_up(const Value* table, Numbers at) {
  return table[at];
}
void store_bytes(uint8_t* to, Numbers v) { *to = static_cast<uint8_t>(v); }

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/pillow_hue_rows_loops.h"

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
  static const std::array<TurnPillowHue, 3> by_level{turn_pillow_hue, pillow_hue_avx2(),
                                                     pillow_hue_avx512()};
  by_level[static_cast<size_t>(simd_level())](rgb, count, hues, sectors, out);
}

}  // namespace headrace
