// SPDX-License-Identifier: Apache-2.0
// The loop of pillow_hue_rows.cc in lanes of float32 and of float64. Included by that file with
// lanes of one number, and by each level's file after its own, between its target pragmas. Internal
// to kernels/.
#pragma once

#include "headrace/kernels/color/pillow_hue_rows_levels.h"

namespace headrace::HEADRACE_LEVEL {
namespace {

// Pillow's rgb2hsv_row and hsv2rgb, operation for operation: their mixture of float and double is
// part of the result. Its round() of products of these widths is the same as adding a half.
void turn_pillow_hue(const uint8_t* const rgb[3], int count, int hues, const PillowSectors& sectors,
                     uint8_t* const out[3]) {
  const Doubles one = Set(1.0), half = Set(0.5), white = Set(255.0);
  const Ints zero = Set(0);
  for (int i = 0; i < count; i += kLanes) {
    const Ints r = LoadBytesAsInts(rgb[0] + i), g = LoadBytesAsInts(rgb[1] + i),
               b = LoadBytesAsInts(rgb[2] + i);
    const Ints most = Max(r, Max(g, b)), least = Min(r, Min(g, b));
    const auto is_gray = Eq(most, least);
    const Floats range = ToFloats(IfThenElse(is_gray, Set(1), Sub(most, least)));
    const Floats from_r = Div(ToFloats(Sub(most, r)), range);
    const Floats from_g = Div(ToFloats(Sub(most, g)), range);
    const Floats from_b = Div(ToFloats(Sub(most, b)), range);
    const auto from = [&](double start, Floats plus, Floats minus) {
      return ToFloats(Sub(Add(Set(start), ToDoubles(plus)), ToDoubles(minus)));
    };
    Floats hue = from(4.0, from_g, from_r);
    hue = IfThenElse(Eq(g, most), from(2.0, from_r, from_b), hue);
    hue = IfThenElse(Eq(r, most), Sub(from_b, from_g), hue);
    const Doubles turns = Add(Div(ToDoubles(hue), Set(6.0)), one);
    hue = ToFloats(Sub(turns, Trunc(turns)));
    const Ints to = And(Add(TruncToInts(Mul(ToDoubles(hue), white)), Set(hues)), Set(255));
    const Floats share = Div(range, ToFloats(Max(most, Set(1))));
    const Ints saturation = IfThenElse(is_gray, zero, TruncToInts(Mul(ToDoubles(share), white)));
    const Floats weight = ToFloats(Div(ToDoubles(ToFloats(saturation)), white));
    const Ints sector = Gather(sectors.number, to);
    const Floats within = Gather(sectors.within, to);
    const Doubles value = ToDoubles(ToFloats(most));
    const auto shade = [&](Doubles less) {
      return TruncToInts(Add(Mul(value, Sub(one, less)), half));
    };
    const Doubles wide = ToDoubles(weight);
    const Ints p = shade(wide), q = shade(ToDoubles(Mul(weight, within))),
               t = shade(Mul(wide, Sub(one, ToDoubles(within))));
    const auto in0 = Eq(sector, zero), in1 = Eq(sector, Set(1)), in2 = Eq(sector, Set(2)),
               in3 = Eq(sector, Set(3)), in4 = Eq(sector, Set(4)), in5 = Eq(sector, Set(5));
    const auto plain = Eq(saturation, zero);
    const Ints red =
        IfThenElse(in1, q, IfThenElse(in2, p, IfThenElse(in3, p, IfThenElse(in4, t, most))));
    const Ints green =
        IfThenElse(in0, t, IfThenElse(in3, q, IfThenElse(in4, p, IfThenElse(in5, p, most))));
    const Ints blue =
        IfThenElse(in0, p, IfThenElse(in1, p, IfThenElse(in2, t, IfThenElse(in5, q, most))));
    StoreAsBytes(out[0] + i, IfThenElse(plain, most, red));
    StoreAsBytes(out[1] + i, IfThenElse(plain, most, green));
    StoreAsBytes(out[2] + i, IfThenElse(plain, most, blue));
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL
