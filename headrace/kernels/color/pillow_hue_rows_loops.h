// SPDX-License-Identifier: Apache-2.0
// The loop of pillow_hue_rows.cc in lanes of float32 and of float64. Included by that file with
// lanes of one number, and by each level's file after its own, between its target pragmas. Internal
// to kernels/.
#pragma once

#include "headrace/kernels/color/pillow_hue_rows_levels.h"

namespace headrace {
namespace {

// Pillow's rgb2hsv_row and hsv2rgb, operation for operation: their mixture of float and double is
// part of the result. Its round() of products of these widths is the same as adding a half.
void turn_pillow_hue(const uint8_t* const rgb[3], int count, int hues, const PillowSectors& sectors,
                     uint8_t* const out[3]) {
  const Doubles one = all(1.0), half = all(0.5), white = all(255.0);
  const Numbers zero = all(0);
  for (int i = 0; i < count; i += kLanes) {
    const Numbers r = numbers_at(rgb[0] + i), g = numbers_at(rgb[1] + i),
                  b = numbers_at(rgb[2] + i);
    const Numbers most = most_of(r, most_of(g, b)), least = least_of(r, least_of(g, b));
    const auto is_gray = equal(most, least);
    const Floats range = floats_of(chosen(is_gray, all(1), difference(most, least)));
    const Floats from_r = quotient(floats_of(difference(most, r)), range);
    const Floats from_g = quotient(floats_of(difference(most, g)), range);
    const Floats from_b = quotient(floats_of(difference(most, b)), range);
    const auto from = [&](double start, Floats plus, Floats minus) {
      return floats_of(difference(sum(all(start), doubles_of(plus)), doubles_of(minus)));
    };
    Floats hue = from(4.0, from_g, from_r);
    hue = chosen(equal(g, most), from(2.0, from_r, from_b), hue);
    hue = chosen(equal(r, most), difference(from_b, from_g), hue);
    const Doubles turns = sum(quotient(doubles_of(hue), all(6.0)), one);
    hue = floats_of(difference(turns, whole_of(turns)));
    const Numbers to = common(sum(cut_off(product(doubles_of(hue), white)), all(hues)), all(255));
    const Floats share = quotient(range, floats_of(most_of(most, all(1))));
    const Numbers saturation = chosen(is_gray, zero, cut_off(product(doubles_of(share), white)));
    const Floats weight = floats_of(quotient(doubles_of(floats_of(saturation)), white));
    const Numbers sector = looked_up(sectors.number, to);
    const Floats within = looked_up(sectors.within, to);
    const Doubles value = doubles_of(floats_of(most));
    const auto shade = [&](Doubles less) {
      return cut_off(sum(product(value, difference(one, less)), half));
    };
    const Doubles wide = doubles_of(weight);
    const Numbers p = shade(wide), q = shade(doubles_of(product(weight, within))),
                  t = shade(product(wide, difference(one, doubles_of(within))));
    const auto in0 = equal(sector, zero), in1 = equal(sector, all(1)), in2 = equal(sector, all(2)),
               in3 = equal(sector, all(3)), in4 = equal(sector, all(4)),
               in5 = equal(sector, all(5));
    const auto plain = equal(saturation, zero);
    const Numbers red = chosen(in1, q, chosen(in2, p, chosen(in3, p, chosen(in4, t, most))));
    const Numbers green = chosen(in0, t, chosen(in3, q, chosen(in4, p, chosen(in5, p, most))));
    const Numbers blue = chosen(in0, p, chosen(in1, p, chosen(in2, t, chosen(in5, q, most))));
    store_bytes(out[0] + i, chosen(plain, most, red));
    store_bytes(out[1] + i, chosen(plain, most, green));
    store_bytes(out[2] + i, chosen(plain, most, blue));
  }
}

}  // namespace
}  // namespace headrace
