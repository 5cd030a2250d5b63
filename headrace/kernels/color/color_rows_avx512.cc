// SPDX-License-Identifier: Apache-2.0
// Colour rows with AVX-512. Twin: the loops of color_rows.cc.
#include "headrace/kernels/color/color_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/color/color_rows.h"
#include "headrace/kernels/target.h"

#define HEADRACE_LEVEL avx512

HEADRACE_TARGET("avx512f,avx512bw,avx512vl");

#include "headrace/kernels/lanes/avx512.h"
// After its lanes:
#include "headrace/kernels/color/color_rows_loops.h"

namespace headrace::HEADRACE_LEVEL {
namespace {

// Of numbers between -1 and 2.
__m512 without_integer(__m512 v) {
  const __m512 one = _mm512_set1_ps(1);
  return _mm512_mask_sub_ps(v, _mm512_cmp_ps_mask(v, one, _CMP_GE_OQ), v, one);
}

// Note [Three quotients by one division]: divisions of 16 lanes take the divider as long as all
// else here takes (those of 8 do not, and are faster as they are). A product with the rounded
// inverse, corrected by its exact remainder, is the rounded quotient (Markstein) for all numerators
// and divisors that 8 bits can give, which Quotients.ByTheInverseAreTheRoundedOnes goes through.
__m512 Div(__m512 number, __m512 divisor, __m512 inverse) {
  const __m512 near = _mm512_mul_ps(number, inverse);
  return _mm512_fmadd_ps(_mm512_fnmadd_ps(near, divisor, number), inverse, near);
}

void turn_hue(const uint8_t* const rgb[3], int count, float share, uint8_t* const out[3]) {
  const __m512 one = _mm512_set1_ps(1), zero = _mm512_setzero_ps(), to_unit = _mm512_set1_ps(kUnit),
               to_bytes = _mm512_set1_ps(kBytes);
  __m512 of_saturation[3], of_part[3];  // sectors are below 8
  for (int c = 0; c < 3; ++c) {
    of_saturation[c] = _mm512_maskz_loadu_ps(0xFF, kHueSectors[c].of_saturation);
    of_part[c] = _mm512_maskz_loadu_ps(0xFF, kHueSectors[c].of_part);
  }
  for (int i = 0; i < count; i += 16) {
    const __m512 r = _mm512_mul_ps(LoadBytesAsFloats(rgb[0] + i), to_unit);
    const __m512 g = _mm512_mul_ps(LoadBytesAsFloats(rgb[1] + i), to_unit);
    const __m512 b = _mm512_mul_ps(LoadBytesAsFloats(rgb[2] + i), to_unit);
    const __m512 most = _mm512_max_ps(r, _mm512_max_ps(g, b));
    const __m512 least = _mm512_min_ps(r, _mm512_min_ps(g, b));
    const __m512 range = _mm512_sub_ps(most, least);
    // Where it is 0 all that is divided is 0; and no other is as small.
    const __m512 divisor = _mm512_max_ps(range, _mm512_set1_ps(kUnit / 2));
    const __m512 saturation = _mm512_div_ps(range, _mm512_max_ps(most, _mm512_set1_ps(kUnit / 2)));
    const __m512 inverse = _mm512_div_ps(one, divisor);
    const __m512 from_r = Div(_mm512_sub_ps(most, r), divisor, inverse);
    const __m512 from_g = Div(_mm512_sub_ps(most, g), divisor, inverse);
    const __m512 from_b = Div(_mm512_sub_ps(most, b), divisor, inverse);
    __m512 hue = _mm512_sub_ps(_mm512_add_ps(from_g, _mm512_set1_ps(4)), from_r);
    hue = _mm512_mask_sub_ps(hue, _mm512_cmp_ps_mask(most, g, _CMP_EQ_OQ),
                             _mm512_add_ps(from_r, _mm512_set1_ps(2)), from_b);
    hue = _mm512_mask_sub_ps(hue, _mm512_cmp_ps_mask(most, r, _CMP_EQ_OQ), from_b, from_g);
    hue = _mm512_add_ps(_mm512_mul_ps(hue, _mm512_set1_ps(kSixth)), one);
    hue = without_integer(_mm512_add_ps(without_integer(hue), _mm512_set1_ps(share)));
    hue = _mm512_mask_add_ps(hue, _mm512_cmp_ps_mask(hue, zero, _CMP_LT_OQ), hue, one);
    const __m512 sixths = _mm512_mul_ps(hue, _mm512_set1_ps(6));
    const __m512i sector = _mm512_cvttps_epi32(sixths);
    const __m512 within = _mm512_sub_ps(sixths, _mm512_cvtepi32_ps(sector));
    const __m512 part = _mm512_mul_ps(saturation, within);
    for (int c = 0; c < 3; ++c) {  // Note [Sectors of the hue]
      const __m512 base =
          _mm512_fnmadd_ps(saturation, _mm512_permutexvar_ps(sector, of_saturation[c]), one);
      const __m512 factor = _mm512_fmadd_ps(part, _mm512_permutexvar_ps(sector, of_part[c]), base);
      const __m512 value = _mm512_mul_ps(_mm512_mul_ps(factor, most), to_bytes);
      StoreAsBytes(out[c] + i, _mm512_cvttps_epi32(value));
    }
  }
}

constexpr ColorRowKernels kKernels{luma_from_rgb, saturate, turn_hue};

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

namespace headrace {

const ColorRowKernels* color_row_kernels_avx512() { return &avx512::kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const ColorRowKernels* color_row_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
