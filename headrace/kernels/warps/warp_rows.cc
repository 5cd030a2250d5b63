// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/warps/warp_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/warps/warp_rows_levels.h"

namespace headrace {
namespace {

// Null for the scalar level.
const WarpKernels* kernels() {
  static const ByLevel<const WarpKernels*> by_level{nullptr, warp_kernels_avx2(),
                                                    warp_kernels_avx512()};
  return by_level.in_force();
}

uint32_t byte_of(uint32_t pixel, int channel) { return (pixel >> (8 * channel)) & 0xff; }

// What lies outside for sure is not converted: an integer may not hold it.
bool within(double x, double y, int width, int height) {
  return x >= 0 && x < width && y >= 0 && y < height;
}

float dot(const std::array<float, 3>& by, float x, float y, bool fused) {
  return (fused ? std::fma(y, by[1], x * by[0]) : x * by[0] + y * by[1]) + by[2];
}

// A pixel of Pillow's filters: the four or sixteen pixels about a place, those beyond the edge
// being the edge's.
struct Neighbours {
  const PixelWords& source;
  int x, y;

  double at(int dx, int dy, int channel) const {
    const int column = std::clamp(x + dx, 0, source.width - 1);
    const int row = std::clamp(y + dy, 0, source.height - 1);
    return byte_of(source.pixels[ptrdiff_t{row} * source.stride + column], channel);
  }
};

double cubic(double v1, double v2, double v3, double v4, double d) {
  const double p2 = -v1 + v3, p3 = 2 * (v1 - v2) + v3 - v4, p4 = -v1 + v2 - v3 + v4;
  return v2 + d * (p2 + d * (p3 + d * p4));
}

// `value(neighbours, dx, dy, channel)` of each place inside; a double from 0 to 255.
template <class Value>
void as_pillow(const PixelWords& source, const double* x, const double* y, int count, uint32_t fill,
               int channels, uint8_t* const out[], const Value& value) {
  for (int i = 0; i < count; ++i) {
    if (!within(x[i], y[i], source.width, source.height)) {
      for (int c = 0; c < channels; ++c) out[c][i] = static_cast<uint8_t>(byte_of(fill, c));
      continue;
    }
    const double px = x[i] - 0.5, py = y[i] - 0.5;
    const double left = std::floor(px), top = std::floor(py);
    const Neighbours near{source, static_cast<int>(left), static_cast<int>(top)};
    for (int c = 0; c < channels; ++c) {
      out[c][i] = static_cast<uint8_t>(value(near, px - left, py - top, c));
    }
  }
}

}  // namespace

void pack_pixels(const uint8_t* const planes[], int channels, int64_t count, uint32_t marks,
                 uint32_t* pixels) {
  if (const WarpKernels* simd = kernels()) {
    return simd->pack(planes, channels, count, marks, pixels);
  }
  for (int64_t i = 0; i < count; ++i) {
    uint32_t pixel = marks;
    for (int c = 0; c < channels; ++c) pixel |= uint32_t{planes[c][i]} << (8 * c);
    pixels[i] = pixel;
  }
}

void torch_places(const TorchGrid& grid, int row, int count, float* x, float* y) {
  if (const WarpKernels* simd = kernels()) return simd->torch_places(grid, row, count, x, y);
  const float at_y = grid.first_row + static_cast<float>(row);
  for (int i = 0; i < count; ++i) {
    const float at_x = grid.first_column + static_cast<float>(i);
    float to_x = dot(grid.x, at_x, at_y, grid.fused), to_y = dot(grid.y, at_x, at_y, grid.fused);
    if (grid.divides) {
      const float by = dot({grid.w[0], grid.w[1], 1.0f}, at_x, at_y, grid.fused);
      to_x = to_x / by - 1.0f;
      to_y = to_y / by - 1.0f;
    }
    x[i] = std::fma(to_x + 1.0f, grid.half_width, -0.5f);
    y[i] = std::fma(to_y + 1.0f, grid.half_height, -0.5f);
  }
}

void displaced_places(const DisplacedRow& row, int count, float* x, float* y) {
  if (const WarpKernels* simd = kernels()) return simd->displaced_places(row, count, x, y);
  for (int i = 0; i < count; ++i) {
    x[i] = std::fma(row.identity_x[i] + row.by_x[i] + 1.0f, row.half_width, -0.5f);
    y[i] = std::fma(row.identity_y + row.by_y[i] + 1.0f, row.half_height, -0.5f);
  }
}

void nearest_offsets(const float* x, const float* y, int count, int width, int height,
                     int32_t* offsets) {
  if (const WarpKernels* simd = kernels())
    return simd->nearest_offsets(x, y, count, width, height, offsets);
  for (int i = 0; i < count; ++i) {
    const float column = std::nearbyint(x[i]), row = std::nearbyint(y[i]);
    offsets[i] = within(column, row, width, height)
                     ? static_cast<int32_t>(row) * width + static_cast<int32_t>(column)
                     : kOutside;
  }
}

void bilinear_as_torch(const PixelWords& source, const float* x, const float* y, int count,
                       const float* fill, int channels, uint8_t* const out[]) {
  if (const WarpKernels* simd = kernels())
    return simd->bilinear_as_torch(source, x, y, count, fill, channels, out);
  for (int i = 0; i < count; ++i) {
    const float left = std::floor(x[i]), top = std::floor(y[i]);
    const float west = x[i] - left, east = 1.0f - west, north = y[i] - top, south = 1.0f - north;
    const float weights[4] = {south * east, south * west, north * east, north * west};
    uint32_t pixels[4];
    bool inside[4];
    for (int k = 0; k < 4; ++k) {
      const float column = left + static_cast<float>(k % 2), row = top + static_cast<float>(k / 2);
      inside[k] = within(column, row, source.width, source.height);
      pixels[k] = inside[k] ? source.pixels[ptrdiff_t{static_cast<int>(row)} * source.stride +
                                            static_cast<int>(column)]
                            : 0;
    }
    const auto blend = [&](const auto& value) {
      float sum = value(0) * weights[0];
      for (int k = 1; k < 4; ++k) sum = std::fma(value(k), weights[k], sum);
      return sum;
    };
    const float share = fill ? blend([&](int k) { return inside[k] ? 1.0f : 0.0f; }) : 1.0f;
    for (int c = 0; c < channels; ++c) {
      float value = blend([&](int k) { return static_cast<float>(byte_of(pixels[k], c)); });
      if (fill) value = (value - fill[c]) * share + fill[c];
      value = std::nearbyint(value);
      // NaN, from places that are none, is 0.
      out[c][i] = static_cast<uint8_t>(value >= 0 ? std::min(value, 255.0f) : 0.0f);
    }
  }
}

void pillow_places(const double coefficients[8], bool divides, int first, int row, int count,
                   double* x, double* y) {
  if (const WarpKernels* simd = kernels())
    return simd->pillow_places(coefficients, divides, first, row, count, x, y);
  const double* const a = coefficients;
  const double at_y = row + 0.5;
  for (int i = 0; i < count; ++i) {
    const double at_x = first + i + 0.5;
    x[i] = a[0] * at_x + a[1] * at_y + a[2];
    y[i] = a[3] * at_x + a[4] * at_y + a[5];
    if (!divides) continue;
    const double by = a[6] * at_x + a[7] * at_y + 1;
    x[i] /= by;
    y[i] /= by;
  }
}

void cut_off_offsets(const double* x, const double* y, int count, int width, int height,
                     int32_t* offsets) {
  if (const WarpKernels* simd = kernels())
    return simd->cut_off_offsets(x, y, count, width, height, offsets);
  for (int i = 0; i < count; ++i) {
    offsets[i] = within(x[i], y[i], width, height)
                     ? static_cast<int32_t>(y[i]) * width + static_cast<int32_t>(x[i])
                     : kOutside;
  }
}

void bilinear_as_pillow(const PixelWords& source, const double* x, const double* y, int count,
                        uint32_t fill, int channels, uint8_t* const out[]) {
  if (const WarpKernels* simd = kernels())
    return simd->bilinear_as_pillow(source, x, y, count, fill, channels, out);
  as_pillow(source, x, y, count, fill, channels, out,
            [](const Neighbours& near, double dx, double dy, int c) {
              const auto along = [&](int row) {
                const double a = near.at(0, row, c);
                return a + (near.at(1, row, c) - a) * dx;
              };
              const double above = along(0), below = along(1);
              return above + (below - above) * dy;
            });
}

void affine_as_pillow(const PixelWords& source, const double coefficients[6], int first, int row,
                      int count, uint32_t fill, int channels, uint8_t* const out[]) {
  if (const WarpKernels* simd = kernels()) {
    return simd->affine_as_pillow(source, coefficients, first, row, count, fill, channels, out);
  }
  constexpr int kPart = 64;
  double x[kPart], y[kPart];
  for (int begin = 0; begin < count; begin += kPart) {
    const int part = std::min(kPart, count - begin);
    uint8_t* to[4] = {};
    for (int c = 0; c < channels; ++c) to[c] = out[c] + begin;
    pillow_places(coefficients, false, first + begin, row, part, x, y);
    bilinear_as_pillow(source, x, y, part, fill, channels, to);
  }
}

void bicubic_as_pillow(const PixelWords& source, const double* x, const double* y, int count,
                       uint32_t fill, int channels, uint8_t* const out[]) {
  as_pillow(source, x, y, count, fill, channels, out,
            [](const Neighbours& near, double dx, double dy, int c) {
              double rows[4];
              for (int r = 0; r < 4; ++r) {
                rows[r] = cubic(near.at(-1, r - 1, c), near.at(0, r - 1, c), near.at(1, r - 1, c),
                                near.at(2, r - 1, c), dx);
              }
              return std::clamp(cubic(rows[0], rows[1], rows[2], rows[3], dy), 0.0, 255.0);
            });
}

void fixed_offsets(const FixedRow& row, int count, int width, int height, int32_t* offsets) {
  if (const WarpKernels* simd = kernels())
    return simd->fixed_offsets(row, count, width, height, offsets);
  auto x = static_cast<uint32_t>(row.x), y = static_cast<uint32_t>(row.y);
  for (int i = 0; i < count; ++i) {
    const int32_t column = static_cast<int32_t>(x) >> 16, at = static_cast<int32_t>(y) >> 16;
    const bool inside = column >= 0 && column < width && at >= 0 && at < height;
    offsets[i] = inside ? at * width + column : kOutside;
    x += static_cast<uint32_t>(row.step_x);
    y += static_cast<uint32_t>(row.step_y);
  }
}

void take_pixels(const uint32_t* pixels, const int32_t* offsets, int count, uint32_t fill,
                 int channels, uint8_t* const out[]) {
  if (const WarpKernels* simd = kernels())
    return simd->take(pixels, offsets, count, fill, channels, out);
  for (int i = 0; i < count; ++i) {
    const uint32_t pixel = offsets[i] == kOutside ? fill : pixels[offsets[i]];
    for (int c = 0; c < channels; ++c) out[c][i] = static_cast<uint8_t>(byte_of(pixel, c));
  }
}

}  // namespace headrace
