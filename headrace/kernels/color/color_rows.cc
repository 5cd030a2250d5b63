// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include "headrace/kernels/color/color_rows.h"

#include <algorithm>
#include <cmath>

#include "headrace/kernels/color/planar_color.h"

namespace headrace {
namespace {

// Note [Sectors of the hue]: the hue's sextant determines for each channel whether it is the value
// v, p = v (1 - s), q = v (1 - part) or t = v (1 - s + part). So each is v ((1 - s w) + part c)
// with w and c of -1, 0 and 1 from a table, and there are no roundings beyond those of the original
// formulas. A seventh entry is for a hue that was rounded up to 1; the eighth is not used.
struct HueSectors {
  float of_saturation[8], of_part[8];
};
constexpr HueSectors kHueSectors[3] = {{{0, 0, 1, 1, 1, 0, 0, 0}, {0, -1, 0, 0, 1, 0, 0, 0}},
                                       {{1, 0, 0, 0, 1, 1, 1, 0}, {1, 0, 0, -1, 0, 0, 1, 0}},
                                       {{1, 1, 1, 0, 0, 0, 1, 0}, {0, 0, 1, 0, 0, -1, 0, 0}}};

}  // namespace

namespace scalar {
namespace {

void luma_from_rgb(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  for (int i = 0; i < count; ++i) {
    gray[i] = static_cast<uint8_t>(luma_of(rgb[0][i], rgb[1][i], rgb[2][i]));
  }
}

void adjust_saturation(const uint8_t* const rgb[3], int count, float factor, float rest,
                       uint8_t* const out[3]) {
  for (int i = 0; i < count; ++i) {
    const float gray = std::floor(luma_of(rgb[0][i], rgb[1][i], rgb[2][i]));
    for (int c = 0; c < 3; ++c) out[c][i] = blend_as_torch(rgb[c][i], gray, factor, rest);
  }
}

void shift_hue(const uint8_t* const rgb[3], int count, float share, uint8_t* const out[3]) {
  for (int i = 0; i < count; ++i) {
    const ByteRgb turned = hue_shifted_bytes(rgb[0][i], rgb[1][i], rgb[2][i], share);
    for (int c = 0; c < 3; ++c) out[c][i] = turned.of[c];
  }
}

}  // namespace
}  // namespace scalar
}  // namespace headrace

#define HEADRACE_OWN_SCALAR
#define HEADRACE_KERNEL "headrace/kernels/color/color_rows.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {

void luma_from_rgb_rows(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  HEADRACE_BY_LEVEL(luma_from_rgb)(rgb, count, gray);
}

void adjust_saturation_rows(const uint8_t* const rgb[3], int count, float factor, float rest,
                            uint8_t* const out[3]) {
  HEADRACE_BY_LEVEL(adjust_saturation)(rgb, count, factor, rest, out);
}

void saturate_rows_as_pillow(const uint8_t* const rgb[3], int count, const PillowBlend& blend,
                             uint8_t* const out[3]) {
  constexpr int kPart = 1024;
  uint8_t gray[kPart + 63];
  for (int first = 0; first < count; first += kPart) {
    const int part = std::min(kPart, count - first);
    const uint8_t* const from[] = {rgb[0] + first, rgb[1] + first, rgb[2] + first};
    uint8_t* const to[] = {out[0] + first, out[1] + first, out[2] + first};
    gray_from_rgb_rows(from, part, gray);
    for (int c = 0; c < 3; ++c) blend_row_as_pillow(from[c], gray, part, blend, to[c]);
  }
}

void shift_hue_rows(const uint8_t* const rgb[3], int count, float share, uint8_t* const out[3]) {
  HEADRACE_BY_LEVEL(shift_hue)(rgb, count, share, out);
}

}  // namespace headrace

#else  // at each SIMD level

#include HEADRACE_LANES

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

void adjust_saturation(const uint8_t* const rgb[3], int count, float factor, float rest,
                       uint8_t* const out[3]) {
  const Floats own = Set(factor), other = Set(rest);
  for (int i = 0; i < count; i += 4 * kLanes) {
    Ints blended[3][4];
    for (int j = 0; j < 4; ++j) {
      const int at = i + j * kLanes;
      const Floats gray = Floor(luma_at(rgb, at));
      for (int c = 0; c < 3; ++c) {
        const Floats value = MulAdd(gray, other, Mul(LoadBytesAsFloats(rgb[c] + at), own));
        blended[c][j] = TruncToInts(Min(value, Set(255.0f)));  // may not fit 32 bits
      }
    }
    for (int c = 0; c < 3; ++c) StoreClamped(out[c] + i, blended[c]);
  }
}

// For numbers between -1 and 2.
Floats without_integer(Floats v) { return Sub(v, IfThenElseZero(Ge(v, Set(1.0f)), Set(1.0f))); }

// Note [Three quotients by one division]: three divisions of 16 lanes would keep the divider busy
// as long as everything else here takes (with 8 lanes they do not, and are faster as they are).
// Instead a product with the rounded inverse, corrected by its exact remainder, gives the correctly
// rounded quotient (Markstein) for all numerators and divisors that 8-bit values can give;
// Quotients.ByTheInverseAreTheRoundedOnes checks all of them.
struct Quotients {
  static constexpr bool kByInverse = kLanes == 16;
  explicit Quotients(Floats by) : divisor(by), inverse(kByInverse ? Div(Set(1.0f), by) : by) {}
  Floats of(Floats number) const {
    if (!kByInverse) return Div(number, divisor);
    const Floats near = Mul(number, inverse);
    return MulAdd(NegMulAdd(near, divisor, number), inverse, near);
  }

  Floats divisor, inverse;
};

void shift_hue(const uint8_t* const rgb[3], int count, float share, uint8_t* const out[3]) {
  const Floats one = Set(1.0f), to_unit = Set(kUnitOfByte), to_bytes = Set(kBytesOfUnit);
  Table8 of_saturation[3], of_part[3];
  for (int c = 0; c < 3; ++c) {
    of_saturation[c] = LoadTable8(kHueSectors[c].of_saturation);
    of_part[c] = LoadTable8(kHueSectors[c].of_part);
  }
  for (int i = 0; i < count; i += 4 * kLanes) {
    Ints turned[3][4];
    for (int j = 0; j < 4; ++j) {
      const int at = i + j * kLanes;
      const Floats r = Mul(LoadBytesAsFloats(rgb[0] + at), to_unit);
      const Floats g = Mul(LoadBytesAsFloats(rgb[1] + at), to_unit);
      const Floats b = Mul(LoadBytesAsFloats(rgb[2] + at), to_unit);
      const Floats most = Max(r, Max(g, b)), least = Min(r, Min(g, b));
      const Floats range = Sub(most, least);
      // If the divisor is 0, so are all numerators; any value up to the smallest other divisor
      // works.
      const Quotients quotients(Max(range, Set(kUnitOfByte / 2)));
      const Floats saturation = Div(range, Max(most, Set(kUnitOfByte / 2)));
      const Floats from_r = quotients.of(Sub(most, r)), from_g = quotients.of(Sub(most, g)),
                   from_b = quotients.of(Sub(most, b));
      Floats hue = Sub(Add(from_g, Set(4.0f)), from_r);
      hue = IfThenElse(Eq(most, g), Sub(Add(from_r, Set(2.0f)), from_b), hue);
      hue = IfThenElse(Eq(most, r), Sub(from_b, from_g), hue);
      hue = Add(Mul(hue, Set(kSixth)), one);
      hue = without_integer(Add(without_integer(hue), Set(share)));
      hue = Add(hue, IfThenElseZero(Lt(hue, Set(0.0f)), one));
      const Floats sixths = Mul(hue, Set(6.0f));
      const Ints sector = TruncToInts(sixths);
      const Floats part = Mul(saturation, Sub(sixths, ToFloats(sector)));
      for (int c = 0; c < 3; ++c) {  // Note [Sectors of the hue]
        const Floats base = NegMulAdd(saturation, Lookup8(of_saturation[c], sector), one);
        const Floats factor = MulAdd(part, Lookup8(of_part[c], sector), base);
        turned[c][j] = TruncToInts(Mul(Mul(factor, most), to_bytes));
      }
    }
    for (int c = 0; c < 3; ++c) StoreClamped(out[c] + i, turned[c]);
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
