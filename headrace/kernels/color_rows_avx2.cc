// SPDX-License-Identifier: Apache-2.0
// Colour rows with AVX2 and FMA. Twin: the loops of color_rows.cc.
#include "headrace/kernels/color_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/color_rows.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#include "headrace/kernels/float_lanes_avx2.h"
// After its lanes:
#include "headrace/kernels/color_rows_loops.h"

namespace headrace {
namespace {

__m256i cut_off_luma_at(const uint8_t* const rgb[3], int i) {
  return _mm256_cvttps_epi32(luma_at(rgb, i));
}

void luma_from_rgb(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (int i = 0; i < count; i += 32) {
    const __m256i low = _mm256_packus_epi32(cut_off_luma_at(rgb, i), cut_off_luma_at(rgb, i + 8));
    const __m256i high =
        _mm256_packus_epi32(cut_off_luma_at(rgb, i + 16), cut_off_luma_at(rgb, i + 24));
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), in_order);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(gray + i), bytes);
  }
}

// Of numbers between -1 and 2.
__m256 without_integer(__m256 v) {
  const __m256 one = _mm256_set1_ps(1);
  return _mm256_sub_ps(v, _mm256_and_ps(_mm256_cmp_ps(v, one, _CMP_GE_OQ), one));
}

__m256 equal(__m256 a, __m256 b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }

void turn_hue(const uint8_t* const rgb[3], int count, float share, uint8_t* const out[3]) {
  const __m256 one = _mm256_set1_ps(1), zero = _mm256_setzero_ps(), to_unit = _mm256_set1_ps(kUnit),
               to_bytes = _mm256_set1_ps(kBytes);
  for (int i = 0; i < count; i += 8) {
    const __m256 r = _mm256_mul_ps(floats_at(rgb[0] + i), to_unit);
    const __m256 g = _mm256_mul_ps(floats_at(rgb[1] + i), to_unit);
    const __m256 b = _mm256_mul_ps(floats_at(rgb[2] + i), to_unit);
    const __m256 most = _mm256_max_ps(r, _mm256_max_ps(g, b));
    const __m256 least = _mm256_min_ps(r, _mm256_min_ps(g, b));
    const __m256 is_gray = equal(most, least);
    const __m256 range = _mm256_sub_ps(most, least);
    const __m256 divisor = _mm256_blendv_ps(range, one, is_gray);
    const __m256 saturation = _mm256_div_ps(range, _mm256_blendv_ps(most, one, is_gray));
    const __m256 from_r = _mm256_div_ps(_mm256_sub_ps(most, r), divisor);
    const __m256 from_g = _mm256_div_ps(_mm256_sub_ps(most, g), divisor);
    const __m256 from_b = _mm256_div_ps(_mm256_sub_ps(most, b), divisor);
    __m256 hue = _mm256_sub_ps(_mm256_add_ps(from_g, _mm256_set1_ps(4)), from_r);
    const __m256 of_green = _mm256_sub_ps(_mm256_add_ps(from_r, _mm256_set1_ps(2)), from_b);
    hue = _mm256_blendv_ps(hue, of_green, equal(most, g));
    hue = _mm256_blendv_ps(hue, _mm256_sub_ps(from_b, from_g), equal(most, r));
    hue = _mm256_add_ps(_mm256_mul_ps(hue, _mm256_set1_ps(kSixth)), one);
    hue = without_integer(_mm256_add_ps(without_integer(hue), _mm256_set1_ps(share)));
    const __m256 is_negative = _mm256_cmp_ps(hue, zero, _CMP_LT_OQ);
    hue = _mm256_add_ps(hue, _mm256_and_ps(is_negative, one));
    const __m256 sixths = _mm256_mul_ps(hue, _mm256_set1_ps(6));
    const __m256 sector = _mm256_floor_ps(sixths);  // 6: a hue that was rounded up to 1
    const __m256 part = _mm256_mul_ps(saturation, _mm256_sub_ps(sixths, sector));
    const __m256 rest = _mm256_sub_ps(one, saturation);
    // torch clamps these to 0 to 1, where they lie: no factor is greater than 1.
    const __m256 p = _mm256_mul_ps(rest, most);
    const __m256 q = _mm256_mul_ps(_mm256_sub_ps(one, part), most);
    const __m256 t = _mm256_mul_ps(_mm256_add_ps(part, rest), most);
    const auto is = [&](float number) { return equal(sector, _mm256_set1_ps(number)); };
    const __m256 in0 = _mm256_or_ps(is(0), is(6)), in1 = is(1), in2 = is(2), in3 = is(3),
                 in4 = is(4), in5 = is(5);
    __m256 red = _mm256_blendv_ps(most, q, in1), green = most, blue = most;
    red = _mm256_blendv_ps(_mm256_blendv_ps(red, p, _mm256_or_ps(in2, in3)), t, in4);
    green = _mm256_blendv_ps(_mm256_blendv_ps(green, t, in0), q, in3);
    green = _mm256_blendv_ps(green, p, _mm256_or_ps(in4, in5));
    blue = _mm256_blendv_ps(_mm256_blendv_ps(blue, p, _mm256_or_ps(in0, in1)), t, in2);
    blue = _mm256_blendv_ps(blue, q, in5);
    store_cut_off(out[0] + i, _mm256_mul_ps(red, to_bytes));
    store_cut_off(out[1] + i, _mm256_mul_ps(green, to_bytes));
    store_cut_off(out[2] + i, _mm256_mul_ps(blue, to_bytes));
  }
}

constexpr ColorRowKernels kKernels{luma_from_rgb, saturate, saturate_as_pillow, turn_hue};

}  // namespace

const ColorRowKernels* color_row_kernels_avx2() { return &kKernels; }

}  // namespace headrace

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace headrace {
const ColorRowKernels* color_row_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
