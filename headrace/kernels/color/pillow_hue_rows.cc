// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include "headrace/kernels/color/color_rows.h"

namespace headrace {
namespace {

// For each hue, Pillow's hsv2rgb sextant, and the position within it.
struct PillowSectors {
  int32_t number[256];
  float within[256];
};

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

namespace scalar {
namespace {

void shift_hue(const uint8_t* const rgb[3], int count, int hues, const PillowSectors&,
               uint8_t* const out[3]) {
  for (int i = 0; i < count; ++i) {
    const ByteRgb turned = hue_shifted_as_pillow(rgb[0][i], rgb[1][i], rgb[2][i], hues);
    for (int c = 0; c < 3; ++c) out[c][i] = turned.of[c];
  }
}

}  // namespace
}  // namespace scalar
}  // namespace headrace

#define HEADRACE_OWN_SCALAR
#define HEADRACE_NO_NEON
#define HEADRACE_KERNEL "headrace/kernels/color/pillow_hue_rows.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {

void shift_hue_rows_as_pillow(const uint8_t* const rgb[3], int count, int hues,
                              uint8_t* const out[3]) {
  static const PillowSectors sectors = make_pillow_sectors();
  HEADRACE_BY_LEVEL(shift_hue)(rgb, count, hues, sectors, out);
}

}  // namespace headrace

#else  // at each SIMD level, as many at a time as a register holds doubles

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

// Pillow's rgb2hsv_row and hsv2rgb, operation for operation: their mix of float and double affects
// the result. For products of these widths, its round() is the same as adding 0.5.
void shift_hue(const uint8_t* const rgb[3], int count, int hues, const PillowSectors& sectors,
               uint8_t* const out[3]) {
  const Doubles one = Set(1.0), half = Set(0.5), white = Set(255.0);
  const Few zero = SetFew(0);
  for (int i = 0; i < count; i += kDoubles) {
    const Few r = LoadBytesAsFew(rgb[0] + i), g = LoadBytesAsFew(rgb[1] + i),
              b = LoadBytesAsFew(rgb[2] + i);
    const Few most = Max(r, Max(g, b)), least = Min(r, Min(g, b));
    const auto is_gray = Eq(most, least);
    const FewFloats range = ToFloats(IfThenElse(is_gray, SetFew(1), Sub(most, least)));
    const FewFloats from_r = Div(ToFloats(Sub(most, r)), range);
    const FewFloats from_g = Div(ToFloats(Sub(most, g)), range);
    const FewFloats from_b = Div(ToFloats(Sub(most, b)), range);
    const auto from = [&](double start, FewFloats plus, FewFloats minus) {
      return ToFloats(Sub(Add(Set(start), ToDoubles(plus)), ToDoubles(minus)));
    };
    FewFloats hue = from(4.0, from_g, from_r);
    hue = IfThenElse(Eq(g, most), from(2.0, from_r, from_b), hue);
    hue = IfThenElse(Eq(r, most), Sub(from_b, from_g), hue);
    const Doubles turns = Add(Div(ToDoubles(hue), Set(6.0)), one);
    hue = ToFloats(Sub(turns, Trunc(turns)));
    const Few to = And(Add(TruncToInts(Mul(ToDoubles(hue), white)), SetFew(hues)), SetFew(255));
    const FewFloats share = Div(range, ToFloats(Max(most, SetFew(1))));
    const Few saturation = IfThenElse(is_gray, zero, TruncToInts(Mul(ToDoubles(share), white)));
    const FewFloats weight = ToFloats(Div(ToDoubles(ToFloats(saturation)), white));
    const Few sector = Gather(sectors.number, to);
    const FewFloats within = Gather(sectors.within, to);
    const Doubles value = ToDoubles(ToFloats(most));
    const auto shade = [&](Doubles less) {
      return TruncToInts(Add(Mul(value, Sub(one, less)), half));
    };
    const Doubles wide = ToDoubles(weight);
    const Few p = shade(wide), q = shade(ToDoubles(Mul(weight, within))),
              t = shade(Mul(wide, Sub(one, ToDoubles(within))));
    const auto in0 = Eq(sector, zero), in1 = Eq(sector, SetFew(1)), in2 = Eq(sector, SetFew(2)),
               in3 = Eq(sector, SetFew(3)), in4 = Eq(sector, SetFew(4)),
               in5 = Eq(sector, SetFew(5));
    const auto plain = Eq(saturation, zero);
    const Few red =
        IfThenElse(in1, q, IfThenElse(in2, p, IfThenElse(in3, p, IfThenElse(in4, t, most))));
    const Few green =
        IfThenElse(in0, t, IfThenElse(in3, q, IfThenElse(in4, p, IfThenElse(in5, p, most))));
    const Few blue =
        IfThenElse(in0, p, IfThenElse(in1, p, IfThenElse(in2, t, IfThenElse(in5, q, most))));
    StoreLowBytes(out[0] + i, IfThenElse(plain, most, red));
    StoreLowBytes(out[1] + i, IfThenElse(plain, most, green));
    StoreLowBytes(out[2] + i, IfThenElse(plain, most, blue));
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
