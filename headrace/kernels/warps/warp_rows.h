// SPDX-License-Identifier: Apache-2.0
// Rows of a warped picture: each pixel's coordinates in the source, and the values there.
// torchvision's grids are computed in float32 with torch's fused operations for AVX2 and better,
// Pillow's in doubles and 16.16 fixed point. Any thread may call these functions.
//
// Positions are in pixels of the source. In torch the center of the first pixel is at 0, in Pillow
// at 0.5. Offsets are y * width + x, or kOutside. Functions may read and write up to 15 elements
// past `count`; those that pack and gather pixels up to kPixelPadding, where offsets must be valid.
#pragma once

#include <cstdint>

#include "headrace/kernels/warps/warp_pixel.h"

namespace headrace {

inline constexpr int32_t kOutside = -1;
inline constexpr int kPixelPadding = 63;
inline constexpr int32_t kMaxOffset = 0x7fffffff;  // pictures have fewer pixels

// A picture as one word per pixel, channel c in byte c, so that a pixel is one load. Blending reads
// one extra pixel on each side of the picture.
struct PixelWords {
  const uint32_t* pixels = nullptr;
  int width = 0, height = 0;
  int stride = 0;  // pixels from one row to the next
};

// Marker in the last byte of pixels with fewer than four channels, so that bilinear_as_torch can
// distinguish them from those outside the picture, which are 0.
inline constexpr uint32_t kIsPixel = 1u << 24;

// Converts 8-bit planes; sets `marks` in each pixel. `marks` only has bits of the last byte.
// REQUIRES: 1 <= channels <= 4.
void pack_pixels(const uint8_t* const planes[], int channels, int64_t count, uint32_t marks,
                 uint32_t* pixels);

void torch_positions(const TorchGrid& grid, int row, int count, float* x, float* y);
// A row of a transformed grid; grids range from -1 to 1. The arrays are read up to 15 elements past
// `count`.
struct DisplacedRow {
  const float* identity_x = nullptr;
  float identity_y = 0;
  const float *by_x = nullptr, *by_y = nullptr;
  float half_width = 0, half_height = 0;  // of the source
};
void displaced_positions(const DisplacedRow& row, int count, float* x, float* y);

// The nearest pixel of each position: grid_sample's "nearest".
void nearest_offsets(const float* x, const float* y, int count, int width, int height,
                     int32_t* offsets);
// grid_sample's "bilinear", rounded, for each channel. `fill` has one value per channel and is
// blended in by the weight of the pixels outside. Null: black. REQUIRES: pixels outside the picture
// are 0, and others have kIsPixel unless there are four channels.
void bilinear_as_torch(const PixelWords& source, const float* x, const float* y, int count,
                       const float* fill, int channels, uint8_t* const out[]);

// Image.transform of Pillow, starting at column `first`: AFFINE has six coefficients, PERSPECTIVE
// eight.
void pillow_positions(const double coefficients[8], bool divides, int first, int row, int count,
                      double* x, double* y);
void truncated_offsets(const double* x, const double* y, int count, int width, int height,
                       int32_t* offsets);
// REQUIRES: pixels outside the picture repeat its edge.
void bilinear_as_pillow(const PixelWords& source, const double* x, const double* y, int count,
                        uint32_t fill, int channels, uint8_t* const out[]);
// The same at a row's positions of an affine map. REQUIRES: the same.
void affine_as_pillow(const PixelWords& source, const double coefficients[6], int first, int row,
                      int count, uint32_t fill, int channels, uint8_t* const out[]);
void bicubic_as_pillow(const PixelWords& source, const double* x, const double* y, int count,
                       uint32_t fill, int channels, uint8_t* const out[]);
void fixed_offsets(const FixedRow& row, int count, int width, int height, int32_t* offsets);

// The pixels at these offsets; `fill` outside.
void take_pixels(const uint32_t* pixels, const int32_t* offsets, int count, uint32_t fill,
                 int channels, uint8_t* const out[]);

}  // namespace headrace
