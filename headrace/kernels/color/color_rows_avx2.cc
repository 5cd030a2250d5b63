// SPDX-License-Identifier: Apache-2.0
// Colour rows with AVX2 and FMA. Twin: the loops of color_rows.cc.
#include "headrace/kernels/color/color_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/color/color_rows.h"
#include "headrace/kernels/target.h"

#define HEADRACE_LEVEL avx2

HEADRACE_TARGET("avx2,fma");

#include "headrace/kernels/lanes/avx2.h"
// After its lanes:
#include "headrace/kernels/color/color_rows_loops.h"

namespace headrace::HEADRACE_LEVEL {
namespace {

// Of numbers between -1 and 2.
__m256 without_integer(__m256 v) {
  const __m256 one = _mm256_set1_ps(1);
  return _mm256_sub_ps(v, _mm256_and_ps(_mm256_cmp_ps(v, one, _CMP_GE_OQ), one));
}

__m256 Eq(__m256 a, __m256 b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }

// `a` where the mask is set, else `b`: AVX2's own blend takes as many steps on some CPUs.
__m256 IfThenElse(__m256 mask, __m256 a, __m256 b) {
  return _mm256_or_ps(_mm256_and_ps(mask, a), _mm256_andnot_ps(mask, b));
}

void turn_hue(const uint8_t* const rgb[3], int count, float share, uint8_t* const out[3]) {
  const __m256 one = _mm256_set1_ps(1), zero = _mm256_setzero_ps(), to_unit = _mm256_set1_ps(kUnit),
               to_bytes = _mm256_set1_ps(kBytes);
  __m256 of_saturation[3], of_part[3];
  for (int c = 0; c < 3; ++c) {
    of_saturation[c] = _mm256_loadu_ps(kHueSectors[c].of_saturation);
    of_part[c] = _mm256_loadu_ps(kHueSectors[c].of_part);
  }
  for (int i = 0; i < count; i += 4 * kLanes) {
    Ints turned[3][4];
    for (int j = 0; j < 4; ++j) {
      const int at = i + j * kLanes;
      const __m256 r = _mm256_mul_ps(LoadBytesAsFloats(rgb[0] + at), to_unit);
      const __m256 g = _mm256_mul_ps(LoadBytesAsFloats(rgb[1] + at), to_unit);
      const __m256 b = _mm256_mul_ps(LoadBytesAsFloats(rgb[2] + at), to_unit);
      const __m256 most = _mm256_max_ps(r, _mm256_max_ps(g, b));
      const __m256 least = _mm256_min_ps(r, _mm256_min_ps(g, b));
      const __m256 range = _mm256_sub_ps(most, least);
      // Where it is 0 all that is divided is 0; and no other is as small.
      const __m256 divisor = _mm256_max_ps(range, _mm256_set1_ps(kUnit / 2));
      const __m256 saturation =
          _mm256_div_ps(range, _mm256_max_ps(most, _mm256_set1_ps(kUnit / 2)));
      const __m256 from_r = _mm256_div_ps(_mm256_sub_ps(most, r), divisor);
      const __m256 from_g = _mm256_div_ps(_mm256_sub_ps(most, g), divisor);
      const __m256 from_b = _mm256_div_ps(_mm256_sub_ps(most, b), divisor);
      const __m256 of_blue = _mm256_sub_ps(_mm256_add_ps(from_g, _mm256_set1_ps(4)), from_r);
      const __m256 of_green = _mm256_sub_ps(_mm256_add_ps(from_r, _mm256_set1_ps(2)), from_b);
      const __m256 of_red = _mm256_sub_ps(from_b, from_g);
      __m256 hue = IfThenElse(Eq(most, r), of_red, IfThenElse(Eq(most, g), of_green, of_blue));
      hue = _mm256_add_ps(_mm256_mul_ps(hue, _mm256_set1_ps(kSixth)), one);
      hue = without_integer(_mm256_add_ps(without_integer(hue), _mm256_set1_ps(share)));
      const __m256 is_negative = _mm256_cmp_ps(hue, zero, _CMP_LT_OQ);
      hue = _mm256_add_ps(hue, _mm256_and_ps(is_negative, one));
      const __m256 sixths = _mm256_mul_ps(hue, _mm256_set1_ps(6));
      const __m256i sector = _mm256_cvttps_epi32(sixths);
      const __m256 within = _mm256_sub_ps(sixths, _mm256_cvtepi32_ps(sector));
      const __m256 part = _mm256_mul_ps(saturation, within);
      for (int c = 0; c < 3; ++c) {  // Note [Sectors of the hue]
        const __m256 base =
            _mm256_fnmadd_ps(saturation, _mm256_permutevar8x32_ps(of_saturation[c], sector), one);
        const __m256 factor =
            _mm256_fmadd_ps(part, _mm256_permutevar8x32_ps(of_part[c], sector), base);
        const __m256 value = _mm256_mul_ps(_mm256_mul_ps(factor, most), to_bytes);
        turned[c][j] = _mm256_cvttps_epi32(value);
      }
    }
    for (int c = 0; c < 3; ++c) StoreClamped(out[c] + i, turned[c]);
  }
}

constexpr ColorRowKernels kKernels{luma_from_rgb, saturate, turn_hue};

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

namespace headrace {

const ColorRowKernels* color_row_kernels_avx2() { return &avx2::kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const ColorRowKernels* color_row_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
