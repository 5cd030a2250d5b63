// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include <cmath>

#include "headrace/kernels/color/color_rows.h"

namespace headrace {
namespace {
constexpr int kHsvBits = 12;  // fraction bits of the quotients

// OpenCV's reciprocals of a value or a range, times 2^kHsvBits: 255 / value, and 30 / range (a
// sixth of the circle).
struct HsvQuotients {
  int32_t of_saturation[256], of_hue[256];
};

HsvQuotients make_quotients() {
  HsvQuotients out{};
  for (int i = 1; i < 256; ++i) {
    out.of_saturation[i] = static_cast<int32_t>(std::nearbyint((255 << kHsvBits) / (1.0 * i)));
    out.of_hue[i] = static_cast<int32_t>(std::nearbyint((180 << kHsvBits) / (6.0 * i)));
  }
  return out;
}
}  // namespace
}  // namespace headrace

#define HEADRACE_KERNEL "headrace/kernels/color/hsv_rows.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {

void change_hsv_rows(const uint8_t* const rgb[3], int count, const HsvChange& change,
                     uint8_t* const out[3]) {
  static const HsvQuotients quotients = make_quotients();
  HEADRACE_BY_LEVEL(change_hsv)(rgb, count, change, quotients, out);
}

}  // namespace headrace

#else  // at each SIMD level

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

// 0 to 255, in units of 1 / 255.
Floats changed(Ints value, float gain, float add) {
  const Floats to = Add(Mul(ToFloats(value), Set(gain)), Set(add));
  return Mul(ToFloats(ClampToBytes(TruncToInts(to))), Set(static_cast<float>(1 / 255.0)));
}

void change_hsv(const uint8_t* const rgb[3], int count, const HsvChange& change,
                const HsvQuotients& quotients, uint8_t* const out[3]) {
  const Floats one = Set(1.0f), white = Set(255.0f);
  const Ints half = Set(1 << (kHsvBits - 1));
  for (int i = 0; i < count; i += kLanes) {
    const Ints r = LoadBytesAsInts(rgb[0] + i), g = LoadBytesAsInts(rgb[1] + i),
               b = LoadBytesAsInts(rgb[2] + i);
    const Ints v = Max(r, Max(g, b)), range = Sub(v, Min(r, Min(g, b)));
    const Ints saturation =
        ShiftRightSigned<kHsvBits>(Add(Mul(range, Gather(quotients.of_saturation, v)), half));
    const Ints twice = Add(range, range);
    Ints away = Add(Sub(r, g), Add(twice, twice));
    away = IfThenElse(Eq(v, g), Add(Sub(b, r), twice), away);
    away = IfThenElse(Eq(v, r), Sub(g, b), away);
    Ints hue = ShiftRightSigned<kHsvBits>(Add(Mul(away, Gather(quotients.of_hue, range)), half));
    hue = Add(hue, Set(change.hue_add));
    hue = IfThenElse(Lt(hue, Set(0)), Add(hue, Set(180)), hue);
    hue = IfThenElse(Lt(hue, Set(180)), hue, Sub(hue, Set(180)));
    const Floats value = changed(v, change.value_gain, change.value_add);
    const Floats share =
        IfThenElse(Eq(saturation, Set(0)), Set(0.0f),
                   changed(saturation, change.saturation_gain, change.saturation_add));
    const Floats sixths = Mul(ToFloats(hue), Set(static_cast<float>(6 / 180.0)));
    const Ints sector = TruncToInts(sixths);
    const Floats within = Sub(sixths, ToFloats(sector));
    const auto shade = [&](Floats less) { return Mul(Mul(value, Sub(one, less)), white); };
    const Floats full = Mul(value, white), p = shade(share), q = shade(Mul(share, within)),
                 t = shade(Mul(share, Sub(one, within)));
    const auto in0 = Eq(sector, Set(0)), in1 = Eq(sector, Set(1)), in2 = Eq(sector, Set(2)),
               in3 = Eq(sector, Set(3)), in4 = Eq(sector, Set(4)), in5 = Eq(sector, Set(5));
    const Floats red =
        IfThenElse(in1, q, IfThenElse(in2, p, IfThenElse(in3, p, IfThenElse(in4, t, full))));
    const Floats green =
        IfThenElse(in0, t, IfThenElse(in3, q, IfThenElse(in4, p, IfThenElse(in5, p, full))));
    const Floats blue =
        IfThenElse(in0, p, IfThenElse(in1, p, IfThenElse(in2, t, IfThenElse(in5, q, full))));
    StoreRounded(out[0] + i, red);
    StoreRounded(out[1] + i, green);
    StoreRounded(out[2] + i, blue);
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
