// SPDX-License-Identifier: Apache-2.0
// Colour rows with NEON. Twin: the loops of color_rows.cc.
#include "headrace/kernels/color/color_rows_levels.h"

#if defined(__aarch64__)

#define HEADRACE_LEVEL neon
#include "headrace/kernels/color/color_rows.h"
#include "headrace/kernels/lanes/neon.h"
// After its lanes:
#include "headrace/kernels/color/color_rows_loops.h"

namespace headrace::HEADRACE_LEVEL {
namespace {

// Of numbers between -1 and 2.
Floats without_integer(Floats v) {
  return Sub(v, IfThenElse(Ge(v, Set(1.0f)), Set(1.0f), Set(0.0f)));
}

// The entries of a table of eight at numbers from 0 to 7.
Floats taken(const uint8x16x2_t& table, Ints at) {
  const uint32x4_t first = vmulq_n_u32(vreinterpretq_u32_s32(at), 0x04040404);
  const uint8x16_t bytes = vreinterpretq_u8_u32(vaddq_u32(first, vdupq_n_u32(0x03020100)));
  return vreinterpretq_f32_u8(vqtbl2q_u8(table, bytes));
}

void turn_hue(const uint8_t* const rgb[3], int count, float share, uint8_t* const out[3]) {
  const Floats one = Set(1.0f), zero = Set(0.0f), to_unit = Set(kUnit), to_bytes = Set(kBytes);
  uint8x16x2_t of_saturation[3], of_part[3];
  for (int c = 0; c < 3; ++c) {
    const HueSectors& sectors = kHueSectors[c];
    for (int half = 0; half < 2; ++half) {
      of_saturation[c].val[half] = vreinterpretq_u8_f32(Load(sectors.of_saturation + 4 * half));
      of_part[c].val[half] = vreinterpretq_u8_f32(Load(sectors.of_part + 4 * half));
    }
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
      // Where it is 0 all that is divided is 0; and no other is as small.
      const Floats divisor = Max(range, Set(kUnit / 2));
      const Floats saturation = Div(range, Max(most, Set(kUnit / 2)));
      const Floats from_r = Div(Sub(most, r), divisor);
      const Floats from_g = Div(Sub(most, g), divisor);
      const Floats from_b = Div(Sub(most, b), divisor);
      const Floats of_blue = Sub(Add(from_g, Set(4.0f)), from_r);
      const Floats of_green = Sub(Add(from_r, Set(2.0f)), from_b);
      const Floats of_red = Sub(from_b, from_g);
      Floats hue =
          IfThenElse(vceqq_f32(most, r), of_red, IfThenElse(vceqq_f32(most, g), of_green, of_blue));
      hue = Add(Mul(hue, Set(kSixth)), one);
      hue = without_integer(Add(without_integer(hue), Set(share)));
      hue = Add(hue, IfThenElse(Gt(zero, hue), one, zero));
      const Floats sixths = Mul(hue, Set(6.0f));
      const Ints sector = TruncToInts(sixths);
      const Floats part = Mul(saturation, Sub(sixths, ToFloats(sector)));
      for (int c = 0; c < 3; ++c) {  // Note [Sectors of the hue]
        const Floats base = vfmsq_f32(one, saturation, taken(of_saturation[c], sector));
        const Floats factor = MulAdd(part, taken(of_part[c], sector), base);
        turned[c][j] = TruncToInts(Mul(Mul(factor, most), to_bytes));
      }
    }
    for (int c = 0; c < 3; ++c) StoreClamped(out[c] + i, turned[c]);
  }
}

constexpr ColorRowKernels kKernels{luma_from_rgb, saturate, turn_hue};

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

namespace headrace {

const ColorRowKernels* color_row_kernels_neon() { return &neon::kKernels; }

}  // namespace headrace

#else

namespace headrace {
const ColorRowKernels* color_row_kernels_neon() { return nullptr; }
}  // namespace headrace

#endif
