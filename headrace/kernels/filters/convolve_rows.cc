// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/filters/convolve_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/filters/convolve_rows_levels.h"

namespace headrace {
namespace {

void along(const float* in, const float* weights, int taps, int count, float* out) {
  for (int i = 0; i < count; ++i) {
    float sum = 0;
    for (int t = 0; t < taps; ++t) sum = std::fma(in[i + t], weights[t], sum);
    out[i] = sum;
  }
}

void across(const float* const rows[], const float* weights, int taps, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    float sum = 0;
    for (int t = 0; t < taps; ++t) sum = std::fma(rows[t][i], weights[t], sum);
    out[i] = static_cast<uint8_t>(std::clamp(std::nearbyint(sum), 0.0f, 255.0f));
  }
}

void across_floats(const float* const rows[], const float* weights, int taps, int count,
                   float* out) {
  for (int i = 0; i < count; ++i) {
    float sum = 0;
    for (int t = 0; t < taps; ++t) sum = std::fma(rows[t][i], weights[t], sum);
    out[i] = sum;
  }
}

constexpr ConvolveKernels kScalar{along, across, across_floats};

const ConvolveKernels& kernels() {
  static const ByLevel<const ConvolveKernels*> by_level{
      &kScalar, convolve_kernels_avx2(), convolve_kernels_avx512(), convolve_kernels_neon()};
  return *by_level.in_force();
}

}  // namespace

void convolve_along(const float* in, const float* weights, int taps, int count, float* out) {
  kernels().along(in, weights, taps, count, out);
}

void convolve_across(const float* const rows[], const float* weights, int taps, int count,
                     uint8_t* out) {
  kernels().across(rows, weights, taps, count, out);
}

void convolve_across(const float* const rows[], const float* weights, int taps, int count,
                     float* out) {
  kernels().across_floats(rows, weights, taps, count, out);
}

void floats_from_bytes(const uint8_t* in, int count, float* out) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]);
}

}  // namespace headrace
