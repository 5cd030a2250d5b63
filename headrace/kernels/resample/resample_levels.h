// SPDX-License-Identifier: Apache-2.0
// The functions of resample.cc per SIMD level. Internal to kernels/.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/kernels/resample/resample.h"

namespace headrace {

// Weights of all outputs of an axis; see ResampleTables::weights.
struct WeighJob {
  Filter filter = Filter::kBilinear;
  double inverse = 1;               // of the filter's scale
  const double* centers = nullptr;  // [padded]
  const int32_t* first = nullptr;   // position in the whole input
  const int32_t* count = nullptr;
  int padded = 0, taps = 0;
  double* scratch = nullptr;   // taps * 8
  int32_t* weights = nullptr;  // [taps][padded]
};

struct ResampleKernels {
  void (*weigh)(const WeighJob& job);
  // Makes reach, base, indices and digits from first, count and weights. Tables of a vertical axis
  // only need what vertical() reads.
  void (*tabulate)(ResampleTables& tables);
  void (*horizontal)(const ResampleTables& tables, const uint8_t* const in[], int channels,
                     uint8_t* out, ptrdiff_t plane);
  void (*vertical)(const ResampleTables& tables, int output, const uint8_t* const rows[], int bytes,
                   uint8_t* out);
};

// Null where the architecture has no such level.
const ResampleKernels* resample_kernels_scalar();
const ResampleKernels* resample_kernels_avx2();
const ResampleKernels* resample_kernels_avx512();
const ResampleKernels* resample_kernels_neon();

}  // namespace headrace
