// SPDX-License-Identifier: Apache-2.0
// The loop of hsv_rows.cc in lanes. Included by hsv_rows.cc with lanes of one number, and by each
// level's file after its own, between its target pragmas. Internal to kernels/.
#pragma once

#include "headrace/kernels/color/hsv_rows_levels.h"

namespace headrace {
namespace {

// From 0 to 255, of 255.
Floats changed(Numbers value, float gain, float add) {
  const Floats to = sum(product(floats_of(value), all(gain)), all(add));
  return product(floats_of(to_bytes(cut_off(to))), all(static_cast<float>(1 / 255.0)));
}

void change_hsv(const uint8_t* const rgb[3], int count, const HsvChange& change,
                const HsvQuotients& quotients, uint8_t* const out[3]) {
  const Floats one = all(1.0f), white = all(255.0f);
  const Numbers half = all(1 << (kHsvBits - 1));
  for (int i = 0; i < count; i += kLanes) {
    const Numbers r = numbers_at(rgb[0] + i), g = numbers_at(rgb[1] + i),
                  b = numbers_at(rgb[2] + i);
    const Numbers v = most_of(r, most_of(g, b)), range = difference(v, least_of(r, least_of(g, b)));
    const Numbers saturation = shifted_down_signed<kHsvBits>(
        sum(product(range, looked_up(quotients.of_saturation, v)), half));
    const Numbers twice = sum(range, range);
    Numbers away = sum(difference(r, g), sum(twice, twice));
    away = chosen(equal(v, g), sum(difference(b, r), twice), away);
    away = chosen(equal(v, r), difference(g, b), away);
    Numbers hue =
        shifted_down_signed<kHsvBits>(sum(product(away, looked_up(quotients.of_hue, range)), half));
    hue = sum(hue, all(change.hue_add));
    hue = chosen(below(hue, all(0)), sum(hue, all(180)), hue);
    hue = chosen(below(hue, all(180)), hue, difference(hue, all(180)));
    const Floats value = changed(v, change.value_gain, change.value_add);
    const Floats share = chosen(equal(saturation, all(0)), all(0.0f),
                                changed(saturation, change.saturation_gain, change.saturation_add));
    const Floats sixths = product(floats_of(hue), all(static_cast<float>(6 / 180.0)));
    const Numbers sector = cut_off(sixths);
    const Floats within = difference(sixths, floats_of(sector));
    const auto shade = [&](Floats less) {
      return product(product(value, difference(one, less)), white);
    };
    const Floats full = product(value, white), p = shade(share), q = shade(product(share, within)),
                 t = shade(product(share, difference(one, within)));
    const auto in0 = equal(sector, all(0)), in1 = equal(sector, all(1)),
               in2 = equal(sector, all(2)), in3 = equal(sector, all(3)),
               in4 = equal(sector, all(4)), in5 = equal(sector, all(5));
    const Floats red = chosen(in1, q, chosen(in2, p, chosen(in3, p, chosen(in4, t, full))));
    const Floats green = chosen(in0, t, chosen(in3, q, chosen(in4, p, chosen(in5, p, full))));
    const Floats blue = chosen(in0, p, chosen(in1, p, chosen(in2, t, chosen(in5, q, full))));
    store_rounded(out[0] + i, red);
    store_rounded(out[1] + i, green);
    store_rounded(out[2] + i, blue);
  }
}

constexpr HsvKernels kKernels{change_hsv};

}  // namespace
}  // namespace headrace
