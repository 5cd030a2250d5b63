// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for resample_wide.cc. Internal to kernels/.
#pragma once

namespace headrace {

// Samples that are summed side by side.
inline constexpr int kWideLanes = 8;

// For each of `outputs`: from which sample on, how many, and with which weights, `most` to each.
struct WideTaps {
  const int *first = nullptr, *count = nullptr;
  const double* weights = nullptr;
  int outputs = 0, most = 0;
};

struct WideKernels {
  // Of kWideLanes rows at once: sample x of row r is samples[x * kWideLanes + r]; the sums
  // likewise.
  void (*across)(const double* samples, const WideTaps& taps, double* sums);
  // One output of `width` columns, from so many rows. Reads and writes up to kWideLanes - 1 columns
  // past the last.
  void (*down)(const float* const rows[], const double* weights, int count, int width,
               double* sums);
  // As WideSample says; `count` is a multiple of kWideLanes.
  void (*rounded)(const double* sums, int count, bool whole, float* out);
};

// Null where the architecture has no such level.
const WideKernels* wide_kernels_avx2();
const WideKernels* wide_kernels_avx512();

}  // namespace headrace
