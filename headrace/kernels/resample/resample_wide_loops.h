// SPDX-License-Identifier: Apache-2.0
// The loops of resample_wide.cc, for vectors of kVector doubles, which are a type of the
// compiler's: sums stay in Pillow's order. Comes after kVector.
#include <cstdint>
#include <cstring>

namespace headrace {
namespace {

typedef double WideSums __attribute__((vector_size(kVector * sizeof(double))));
typedef float WideFloats __attribute__((vector_size(kVector * sizeof(float))));
typedef int32_t WideNumbers __attribute__((vector_size(kVector * sizeof(int32_t))));
constexpr int kVectors = kWideLanes / kVector;

void across_in_lanes(const double* samples, const WideTaps& taps, double* sums) {
  for (int i = 0; i < taps.outputs; ++i) {
    const double* at = samples + ptrdiff_t{taps.first[i]} * kWideLanes;
    const double* const weights = taps.weights + ptrdiff_t{i} * taps.most;
    WideSums sum[kVectors] = {};
    for (int t = 0; t < taps.count[i]; ++t, at += kWideLanes) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        WideSums sample;
        std::memcpy(&sample, at + v * kVector, sizeof(sample));
        sum[v] += sample * weights[t];
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      std::memcpy(sums + ptrdiff_t{i} * kWideLanes + v * kVector, &sum[v], sizeof(sum[v]));
    }
  }
}

void down_in_lanes(const float* const rows[], const double* weights, int count, int width,
                   double* sums) {
  for (int x = 0; x < width; x += kWideLanes) {
    WideSums sum[kVectors] = {};
    for (int t = 0; t < count; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        WideFloats sample;
        std::memcpy(&sample, rows[t] + x + v * kVector, sizeof(sample));
        sum[v] += __builtin_convertvector(sample, WideSums) * weights[t];
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      std::memcpy(sums + x + v * kVector, &sum[v], sizeof(sum[v]));
    }
  }
}

void rounded_in_lanes(const double* sums, int count, bool whole, float* out) {
  for (int i = 0; i < count; i += kVector) {
    WideSums sum;
    std::memcpy(&sum, sums + i, sizeof(sum));
    WideFloats sample;
    if (whole) {  // Pillow's ROUND_UP, of what has been brought into the range
      sum = sum > 0.0 ? sum : WideSums{};
      sum = sum < 65535.0 ? sum : WideSums{} + 65535.0;
      sample = __builtin_convertvector(__builtin_convertvector(sum + 0.5, WideNumbers), WideFloats);
    } else {
      sample = __builtin_convertvector(sum, WideFloats);
    }
    std::memcpy(out + i, &sample, sizeof(sample));
  }
}

constexpr WideKernels kKernels{across_in_lanes, down_in_lanes, rounded_in_lanes};

}  // namespace
}  // namespace headrace
