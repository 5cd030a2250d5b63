// SPDX-License-Identifier: Apache-2.0
// Convolves float32 rows with a one-dimensional kernel, along and across them: the two halves of a
// separable convolution. Each sum is a chain of fused multiply-adds in the order of the taps, so
// all SIMD levels give the same bits.
//
// Any thread may call them. They may read and write up to 15 samples past `count`.
#pragma once

#include <cstdint>

namespace headrace {

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

}  // namespace headrace
