// SPDX-License-Identifier: Apache-2.0
// Filters on rows: convolution, mean, median, box filter, sharpening. All SIMD levels give the same
// bits. Any thread may call these functions.
#pragma once

#include <cstdint>

#include "headrace/kernels/color/color_rows.h"

namespace headrace {

// Convolves float32 rows with a one-dimensional kernel, along and across them: the two halves of a
// separable convolution. Each sum is a chain of fused multiply-adds in the order of the taps. They
// may read and write up to 15 samples past `count`.
//
// out[i] = sum of weights[t] * in[i + t]
void convolve_along(const float* in, const float* weights, int taps, int count, float* out);
// out[i] = sum of weights[t] * rows[t][i], rounded to the nearest byte, ties to even.
void convolve_across(const float* const rows[], const float* weights, int taps, int count,
                     uint8_t* out);
// The same without rounding.
void convolve_across(const float* const rows[], const float* weights, int taps, int count,
                     float* out);
// out[i] = in[i]
void floats_from_bytes(const uint8_t* in, int count, float* out);

// out[x]: the mean of rows[0 .. n - 1][x], rounded to nearest, ties to even. May read and write up
// to 63 bytes past `count` samples of each row. REQUIRES: 1 <= n <= 127.
void mean_row(const uint8_t* const rows[], int n, int count, uint8_t* out);

inline constexpr int kWidestMedian = 7;

// Medians of square neighborhoods: out[x] is the median of rows[0 .. size - 1], columns x to x +
// size - 1. Rows are readable, and `out` is writable, up to 64 bytes past the end. REQUIRES: size
// is 3, 5 or 7.
void median_row(const uint8_t* const rows[], int size, int count, uint8_t* out);

// The extended box filter of Gwosdek et al. (2011) along uint8 columns, with the integer
// arithmetic of Pillow's BoxBlur. A box covers `reach` rows on either side, plus a fraction of the
// next row.
struct BoxWeights {
  int reach = 0;
  uint32_t inside = 0, end = 0;  // in units of 2^-24

  // REQUIRES: 0 <= radius < 1e6.
  static BoxWeights of(float radius);
};

constexpr int kBoxColumns = 64;

// Filters a strip of kBoxColumns columns, whose rows are next to each other:
//   out(y) = (inside * sum of in(y - reach) to in(y + reach)
//             + end * (in(y - reach - 1) + in(y + reach + 1)) + 2^23) >> 24
// Beyond the ends, the first and the last row are repeated. REQUIRES: height > 0, no overlap.
void box_columns(const uint8_t* in, int height, const BoxWeights& weights, uint8_t* out);

// Blends 8-bit rows with their 3 x 3 blur, as torchvision and Pillow sharpen. They may read and
// write up to 63 bytes past `width` of the row and of `out`.
//
// The input rows around a pixel: above it, at it, and below it.
struct ThreeRows {
  const uint8_t *above, *row, *below;
};

// Writes out[1 .. width - 2]; the caller then fills the first and last column, which have no blur.
// Equals adjust_sharpness of torchvision v2 on tensors. `rest`: float(1.0 - factor).
void sharpen_row(const ThreeRows& in, int width, float rest, uint8_t* out);
// The same, equal to Pillow's ImageEnhance.Sharpness.
void sharpen_row_as_pillow(const ThreeRows& in, int width, const PillowBlend& blend, uint8_t* out);

}  // namespace headrace
