// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include "headrace/kernels/filters/filter_rows.h"

#define HEADRACE_KERNEL "headrace/kernels/filters/convolve_rows.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {

void convolve_along(const float* in, const float* weights, int taps, int count, float* out) {
  HEADRACE_BY_LEVEL(along)(in, weights, taps, count, out);
}

void convolve_across(const float* const rows[], const float* weights, int taps, int count,
                     uint8_t* out) {
  HEADRACE_BY_LEVEL(across<uint8_t>)(rows, weights, taps, count, out);
}

void convolve_across(const float* const rows[], const float* weights, int taps, int count,
                     float* out) {
  HEADRACE_BY_LEVEL(across<float>)(rows, weights, taps, count, out);
}

void floats_from_bytes(const uint8_t* in, int count, float* out) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]);
}

}  // namespace headrace

#else  // at each SIMD level

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

// Several sums at a time; a single one would wait for its own last addition.
constexpr int kSums = 4;

template <int sums>
void sum_along(const float* in, const float* weights, int taps, float* out) {
  Floats sum[sums] = {};
  for (int t = 0; t < taps; ++t) {
    const Floats weight = Set(weights[t]);
#pragma GCC unroll 8
    for (int s = 0; s < sums; ++s) sum[s] = MulAdd(Load(in + s * kLanes + t), weight, sum[s]);
  }
#pragma GCC unroll 8
  for (int s = 0; s < sums; ++s) Store(out + s * kLanes, sum[s]);
}

void keep(uint8_t* to, Floats sum) { StoreRounded(to, sum); }
void keep(float* to, Floats sum) { Store(to, sum); }

template <int sums, class Item>
void sum_across(const float* const rows[], int at, const float* weights, int taps, Item* out) {
  Floats sum[sums] = {};
  for (int t = 0; t < taps; ++t) {
    const Floats weight = Set(weights[t]);
#pragma GCC unroll 8
    for (int s = 0; s < sums; ++s) sum[s] = MulAdd(Load(rows[t] + at + s * kLanes), weight, sum[s]);
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

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
