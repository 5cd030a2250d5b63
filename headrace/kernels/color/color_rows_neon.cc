// SPDX-License-Identifier: Apache-2.0
// Colour rows with NEON. Twin: the loops of color_rows.cc.
#include "headrace/kernels/color/color_rows_levels.h"

#if defined(__aarch64__)

#include "headrace/kernels/color/color_rows.h"
#include "headrace/kernels/float_lanes_neon.h"
// After its lanes:
#include "headrace/kernels/color/color_rows_loops.h"

namespace headrace {
namespace {

// Of numbers between -1 and 2.
Floats without_integer(Floats v) {
  return difference(v, chosen(at_least(v, all(1.0f)), all(1.0f), all(0.0f)));
}

// The entries of a table of eight at numbers from 0 to 7.
Floats taken(const uint8x16x2_t& table, Numbers at) {
  const uint32x4_t first = vmulq_n_u32(vreinterpretq_u32_s32(at), 0x04040404);
  const uint8x16_t bytes = vreinterpretq_u8_u32(vaddq_u32(first, vdupq_n_u32(0x03020100)));
  return vreinterpretq_f32_u8(vqtbl2q_u8(table, bytes));
}

void turn_hue(const uint8_t* const rgb[3], int count, float share, uint8_t* const out[3]) {
  const Floats one = all(1.0f), zero = all(0.0f), to_unit = all(kUnit), to_bytes = all(kBytes);
  uint8x16x2_t of_saturation[3], of_part[3];
  for (int c = 0; c < 3; ++c) {
    const HueSectors& sectors = kHueSectors[c];
    for (int half = 0; half < 2; ++half) {
      of_saturation[c].val[half] = vreinterpretq_u8_f32(load(sectors.of_saturation + 4 * half));
      of_part[c].val[half] = vreinterpretq_u8_f32(load(sectors.of_part + 4 * half));
    }
  }
  for (int i = 0; i < count; i += 4 * kLanes) {
    Numbers turned[3][4];
    for (int j = 0; j < 4; ++j) {
      const int at = i + j * kLanes;
      const Floats r = product(floats_at(rgb[0] + at), to_unit);
      const Floats g = product(floats_at(rgb[1] + at), to_unit);
      const Floats b = product(floats_at(rgb[2] + at), to_unit);
      const Floats most = most_of(r, most_of(g, b)), least = least_of(r, least_of(g, b));
      const Floats range = difference(most, least);
      // Where it is 0 all that is divided is 0; and no other is as small.
      const Floats divisor = most_of(range, all(kUnit / 2));
      const Floats saturation = quotient(range, most_of(most, all(kUnit / 2)));
      const Floats from_r = quotient(difference(most, r), divisor);
      const Floats from_g = quotient(difference(most, g), divisor);
      const Floats from_b = quotient(difference(most, b), divisor);
      const Floats of_blue = difference(sum(from_g, all(4.0f)), from_r);
      const Floats of_green = difference(sum(from_r, all(2.0f)), from_b);
      const Floats of_red = difference(from_b, from_g);
      Floats hue =
          chosen(vceqq_f32(most, r), of_red, chosen(vceqq_f32(most, g), of_green, of_blue));
      hue = sum(product(hue, all(kSixth)), one);
      hue = without_integer(sum(without_integer(hue), all(share)));
      hue = sum(hue, chosen(above(zero, hue), one, zero));
      const Floats sixths = product(hue, all(6.0f));
      const Numbers sector = cut_off(sixths);
      const Floats part = product(saturation, difference(sixths, floats_of(sector)));
      for (int c = 0; c < 3; ++c) {  // Note [Sectors of the hue]
        const Floats base = vfmsq_f32(one, saturation, taken(of_saturation[c], sector));
        const Floats factor = fused(part, taken(of_part[c], sector), base);
        turned[c][j] = cut_off(product(product(factor, most), to_bytes));
      }
    }
    for (int c = 0; c < 3; ++c) store_clamped(out[c] + i, turned[c]);
  }
}

constexpr ColorRowKernels kKernels{luma_from_rgb, saturate, turn_hue};

}  // namespace

const ColorRowKernels* color_row_kernels_neon() { return &kKernels; }

}  // namespace headrace

#else

namespace headrace {
const ColorRowKernels* color_row_kernels_neon() { return nullptr; }
}  // namespace headrace

#endif
