// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for warp_rows.cc, where each has its scalar twin. Whole vectors
// are computed, past `count` too. Internal to kernels/.
#pragma once

#include "headrace/kernels/warps/warp_rows.h"

namespace headrace {

struct WarpKernels {
  void (*pack)(const uint8_t* const planes[], int channels, int64_t count, uint32_t marks,
               uint32_t* pixels);
  void (*torch_places)(const TorchGrid& grid, int row, int count, float* x, float* y);
  void (*displaced_places)(const DisplacedRow& row, int count, float* x, float* y);
  void (*nearest_offsets)(const float* x, const float* y, int count, int width, int height,
                          int32_t* offsets);
  void (*bilinear_as_torch)(const PixelWords& source, const float* x, const float* y, int count,
                            const float* fill, int channels, uint8_t* const out[]);
  void (*pillow_places)(const double coefficients[8], bool divides, int first, int row, int count,
                        double* x, double* y);
  void (*bilinear_as_pillow)(const PixelWords& source, const double* x, const double* y, int count,
                             uint32_t fill, int channels, uint8_t* const out[]);
  void (*affine_as_pillow)(const PixelWords& source, const double coefficients[6], int first,
                           int row, int count, uint32_t fill, int channels, uint8_t* const out[]);
  void (*cut_off_offsets)(const double* x, const double* y, int count, int width, int height,
                          int32_t* offsets);
  void (*fixed_offsets)(const FixedRow& row, int count, int width, int height, int32_t* offsets);
  void (*take)(const uint32_t* pixels, const int32_t* offsets, int count, uint32_t fill,
               int channels, uint8_t* const out[]);
};

// Null where the architecture has no such level.
const WarpKernels* warp_kernels_avx2();
const WarpKernels* warp_kernels_avx512();

}  // namespace headrace
