// SPDX-License-Identifier: Apache-2.0
// The loops of convolve_rows.cc in lanes. Included by each level's file after its lanes
// (float_lanes_avx2.h, float_lanes_avx512.h), between its target pragmas. Internal to kernels/.
#pragma once

#include "headrace/kernels/filters/convolve_rows_levels.h"

namespace headrace {
namespace {

// Several sums at a time: one alone would wait for its own last addition.
constexpr int kSums = 4;

template <int sums>
void sum_along(const float* in, const float* weights, int taps, float* out) {
  Floats sum[sums] = {};
  for (int t = 0; t < taps; ++t) {
    const Floats weight = all(weights[t]);
#pragma GCC unroll 8
    for (int s = 0; s < sums; ++s) sum[s] = fused(load(in + s * kLanes + t), weight, sum[s]);
  }
#pragma GCC unroll 8
  for (int s = 0; s < sums; ++s) store(out + s * kLanes, sum[s]);
}

void keep(uint8_t* to, Floats sum) { store_rounded(to, sum); }
void keep(float* to, Floats sum) { store(to, sum); }

template <int sums, class Item>
void sum_across(const float* const rows[], int at, const float* weights, int taps, Item* out) {
  Floats sum[sums] = {};
  for (int t = 0; t < taps; ++t) {
    const Floats weight = all(weights[t]);
#pragma GCC unroll 8
    for (int s = 0; s < sums; ++s) sum[s] = fused(load(rows[t] + at + s * kLanes), weight, sum[s]);
  }
#pragma GCC unroll 8
  for (int s = 0; s < sums; ++s) keep(out + at + s * kLanes, sum[s]);
}

void along(const float* in, const float* weights, int taps, int count, float* out) {
  int i = 0;
  for (; i + (kSums - 1) * kLanes < count; i += kSums * kLanes) {
    sum_along<kSums>(in + i, weights, taps, out + i);
  }
  for (; i < count; i += kLanes) sum_along<1>(in + i, weights, taps, out + i);
}

template <class Item>
void across(const float* const rows[], const float* weights, int taps, int count, Item* out) {
  int i = 0;
  for (; i + (kSums - 1) * kLanes < count; i += kSums * kLanes) {
    sum_across<kSums>(rows, i, weights, taps, out);
  }
  for (; i < count; i += kLanes) sum_across<1>(rows, i, weights, taps, out);
}

constexpr ConvolveKernels kKernels{along, across<uint8_t>, across<float>};

}  // namespace
}  // namespace headrace
