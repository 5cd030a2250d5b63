// SPDX-License-Identifier: Apache-2.0
// One pixel of a warped picture: its coordinates in the source, and the blend of the pixels there.
// Used for rows on the CPU (warp_rows.h, whose conventions apply) and for pictures on a GPU
// (batch/warp_pictures.h).
#pragma once

#include <cstdint>

#include "headrace/base/host_device_function.h"
#include "headrace/kernels/machine_floats.h"

namespace headrace {

// torchvision's affine_grid and _perspective_grid, and the conversion from grid to pixels.
struct TorchGrid {
  // For the output's column x and row y: x0 * x + x1 * y + x2 and so on; if `divides`, both are
  // divided by w0 * x + w1 * y + 1 and reduced by 1.
  float x[3] = {}, y[3] = {};
  float w[2] = {};
  bool divides = false;
  bool fused = true;  // torch multiplies matrices with few rows without fused operations
  float first_column = 0, first_row = 0;  // coordinates of the output's first pixel
  float half_width = 0, half_height = 0;  // of the source
};

template <class Real>
struct SourcePosition {
  Real x, y;
};

HEADRACE_HD inline float grid_dot(const float by[2], float last, float x, float y, bool fused) {
  const float first = x * by[0];
  return (fused ? floats::fma(y, by[1], first) : first + y * by[1]) + last;
}

// at_x, at_y: the pixel's integer coordinates.
HEADRACE_HD inline SourcePosition<float> torch_position(const TorchGrid& grid, float at_x,
                                                        float at_y) {
  float to_x = grid_dot(grid.x, grid.x[2], at_x, at_y, grid.fused);
  float to_y = grid_dot(grid.y, grid.y[2], at_x, at_y, grid.fused);
  if (grid.divides) {
    const float by = grid_dot(grid.w, 1.0f, at_x, at_y, grid.fused);
    to_x = to_x / by - 1.0f;
    to_y = to_y / by - 1.0f;
  }
  return {floats::fma(to_x + 1.0f, grid.half_width, -0.5f),
          floats::fma(to_y + 1.0f, grid.half_height, -0.5f)};
}

// at_x, at_y: the pixel's center.
HEADRACE_HD inline SourcePosition<double> pillow_position(const double a[8], bool divides,
                                                          double at_x, double at_y) {
  SourcePosition<double> place{a[0] * at_x + a[1] * at_y + a[2], a[3] * at_x + a[4] * at_y + a[5]};
  if (divides) {
    const double by = a[6] * at_x + a[7] * at_y + 1;
    place.x /= by;
    place.y /= by;
  }
  return place;
}

// Whether coordinates are inside the picture. Others must not be converted to integers, which may
// overflow.
HEADRACE_HD inline bool within(double x, double y, int width, int height) {
  return x >= 0 && x < width && y >= 0 && y < height;
}
HEADRACE_HD inline bool within(float x, float y, int width, int height) {
  return x >= 0 && x < static_cast<float>(width) && y >= 0 && y < static_cast<float>(height);
}

// The four pixels around a position, with the weights of grid_sample's "bilinear": k is the one k %
// 2 columns and k / 2 rows from the first.
struct TorchSquare {
  int32_t column, row;  // of the first one
  float weights[4];
  bool inside[4];  // the picture
};
HEADRACE_HD inline TorchSquare torch_square(float x, float y, int width, int height) {
  const float left = floats::floor(x), top = floats::floor(y);
  const float west = x - left, east = 1.0f - west, north = y - top, south = 1.0f - north;
  TorchSquare square{0, 0, {south * east, south * west, north * east, north * west}, {}};
  // The first index is valid only if one of the four pixels is inside the picture.
  if (!within(left + 1.0f, top + 1.0f, width + 1, height + 1)) return square;
  square.column = static_cast<int32_t>(left);
  square.row = static_cast<int32_t>(top);
  const bool columns[2] = {square.column >= 0, square.column + 1 < width};
  const bool rows[2] = {square.row >= 0, square.row + 1 < height};
  HEADRACE_UNROLLED
  for (int k = 0; k < 4; ++k) square.inside[k] = columns[k % 2] && rows[k / 2];
  return square;
}

HEADRACE_HD inline float blended_as_torch(const float weights[4], float a, float b, float c,
                                          float d) {
  const float sum = floats::fma(b, weights[1], a * weights[0]);
  return floats::fma(d, weights[3], floats::fma(c, weights[2], sum));
}
// The part of a position's weights inside the picture.
HEADRACE_HD inline float share_inside(const TorchSquare& square) {
  const auto counted = [&](int k) { return square.inside[k] ? 1.0f : 0.0f; };
  return blended_as_torch(square.weights, counted(0), counted(1), counted(2), counted(3));
}
// The remainder is the fill.
HEADRACE_HD inline float filled_as_torch(float value, float fill, float share) {
  return (value - fill) * share + fill;
}

// Blends four bytes, `dx` and `dy` from the first one's center; truncates like Pillow.
HEADRACE_HD inline double bilinear_of(double nw, double ne, double sw, double se, double dx,
                                      double dy) {
  const double above = nw + (ne - nw) * dx, below = sw + (se - sw) * dx;
  return above + (below - above) * dy;
}

// A row of an affine warp in 16.16 fixed point: its first pixel, and the increment per pixel.
struct FixedRow {
  int32_t x, y, step_x, step_y;
};

}  // namespace headrace
