// SPDX-License-Identifier: Apache-2.0
// WarpPictures: pictures warped by affine and perspective maps; each thread computes four adjacent
// columns of a row, all channels. Pixels are sampled as on the CPU (kernels/warps/warp_pixel.h),
// nearest or bilinear, in torch's arithmetic and in Pillow's, so the bits are the CPU's. The host
// computes a warp's parameters (image/device_warp.h).
#pragma once

#include <cstdint>

#include "headrace/kernels/batch/pass_jobs.h"
#include "headrace/kernels/warps/warp_pixel.h"

namespace headrace {

// How a pixel's source position is computed.
enum class WarpLookup : uint8_t {
  kTorch,    // torch's grid, in float32
  kDoubles,  // Pillow's perspective and all of its bilinear warps, in double
  kFixed,    // Pillow's nearest pixels: 16.16 fixed point
  kAxes,     // the same if axes stay axis-aligned: one table for columns and one for rows
};

struct WarpJob {
  PassPlanes planes = {};
  int32_t source_height = 0, source_width = 0;
  WarpLookup lookup = WarpLookup::kTorch;
  bool bilinear = false;  // else nearest
  bool divides = false;   // kDoubles: a perspective
  bool fills = false;     // torch's bilinear: the edges blend into the fill, else into black
  uint8_t fill[4] = {};   // value outside the source, by channel
  float blended_fill[4] = {};
  TorchGrid torch = {};             // kTorch
  int32_t column = 0, row = 0;      // kDoubles: of the output's first pixel
  double pillow[8] = {};            // kDoubles
  FixedRow fixed = {};              // kFixed, of the first row
  uint32_t down_x = 0, down_y = 0;  // and the increment per row
  int64_t table = 0;                // kAxes: tables of the pass, columns first; negative: outside

  static uint32_t units(const PassPlanes& planes) {
    return planes.channels > 0 ? pass_warps(int64_t{planes.height} * ((planes.width + 3) / 4)) : 0;
  }
};

struct WarpPictures {
  PassJobs<WarpJob> work;
  const int32_t* tables = nullptr;
  const uint8_t* from = nullptr;  // aligned to 4 bytes, and so is `to`; they do not overlap
  uint8_t* to = nullptr;

  HEADRACE_HD int64_t items() const { return int64_t{work.units} * kPassWarp; }

  HEADRACE_HD void operator()(int64_t item) const {
    const int32_t number = work.job_of(static_cast<uint32_t>(item / kPassWarp));
    const WarpJob& job = work.jobs[number];
    const PassPlanes& planes = job.planes;
    const uint32_t thread = static_cast<uint32_t>(item - int64_t{work.starts[number]} * kPassWarp);
    const uint32_t fours = static_cast<uint32_t>(planes.width + 3) / 4;
    const uint32_t line = thread / fours;
    if (line >= static_cast<uint32_t>(planes.height)) return;
    const int32_t y = static_cast<int32_t>(line);
    const int32_t x = static_cast<int32_t>(thread - line * fours) * 4;
    const int32_t end = x + 4 < planes.width ? 4 : planes.width - x;
    uint32_t four[4] = {};  // by channel
    HEADRACE_ROLLED
    for (int32_t i = 0; i < end; ++i) {
      Pixel pixel;
      if (!job.bilinear) {
        nearest(job, x + i, y, pixel);
      } else if (job.lookup == WarpLookup::kTorch) {
        torch_bilinear(job, x + i, y, pixel);
      } else {
        pillow_bilinear(job, x + i, y, pixel);
      }
      HEADRACE_UNROLLED
      for (int c = 0; c < 4; ++c) four[c] |= (pixel.of[c] & 255) << 8 * i;
    }
    uint8_t* out = to + planes.to + int64_t{y} * planes.to_row;
    HEADRACE_UNROLLED
    for (int c = 0; c < 4; ++c) {
      if (c >= planes.channels) break;
      store_four(out, x, planes.width, planes.stores_words(), four[c]);
      out += planes.to_plane;
    }
  }

 private:
  struct Pixel {
    uint32_t of[4] = {};  // by channel: the lowest byte
  };

  HEADRACE_HD const uint8_t* sample(const WarpJob& job, int32_t column, int32_t row) const {
    return from + job.planes.from + int64_t{row} * job.planes.from_row + column;
  }
  // Calls make(c), which returns channel c's byte, for each channel.
  template <class Make>
  HEADRACE_HD static void each_channel(const WarpJob& job, Pixel& pixel, const Make& make) {
    HEADRACE_UNROLLED
    for (int c = 0; c < 4; ++c) {
      if (c < job.planes.channels) pixel.of[c] = make(c);
    }
  }
  HEADRACE_HD static void fill(const WarpJob& job, Pixel& pixel) {
    each_channel(job, pixel, [&](int c) { return uint32_t{job.fill[c]}; });
  }

  HEADRACE_HD static SourcePosition<float> torch_position_of(const WarpJob& job, int32_t x,
                                                             int32_t y) {
    return torch_position(job.torch, job.torch.first_column + static_cast<float>(x),
                          job.torch.first_row + static_cast<float>(y));
  }
  HEADRACE_HD static SourcePosition<double> pillow_position_of(const WarpJob& job, int32_t x,
                                                               int32_t y) {
    return pillow_position(job.pillow, job.divides, job.column + x + 0.5, job.row + y + 0.5);
  }

  struct Nearest {
    int32_t column = 0, row = 0;
    bool inside = false;
  };
  HEADRACE_HD Nearest nearest_of(const WarpJob& job, int32_t x, int32_t y) const {
    const int32_t width = job.source_width, height = job.source_height;
    switch (job.lookup) {
      case WarpLookup::kTorch: {
        const SourcePosition<float> place = torch_position_of(job, x, y);
        const float column = floats::rint(place.x), row = floats::rint(place.y);
        if (!within(column, row, width, height)) return {};
        return {static_cast<int32_t>(column), static_cast<int32_t>(row), true};
      }
      case WarpLookup::kDoubles: {
        const SourcePosition<double> place = pillow_position_of(job, x, y);
        if (!within(place.x, place.y, width, height)) return {};
        return {static_cast<int32_t>(place.x), static_cast<int32_t>(place.y), true};
      }
      case WarpLookup::kFixed: {
        const auto at = [&](int32_t first, int32_t step, uint32_t down) {
          return static_cast<int32_t>(static_cast<uint32_t>(first) +
                                      static_cast<uint32_t>(x) * static_cast<uint32_t>(step) +
                                      static_cast<uint32_t>(y) * down) >>
                 16;
        };
        const int32_t column = at(job.fixed.x, job.fixed.step_x, job.down_x);
        const int32_t row = at(job.fixed.y, job.fixed.step_y, job.down_y);
        return {column, row, column >= 0 && column < width && row >= 0 && row < height};
      }
      default: {
        const int32_t* const table = tables + job.table;
        const int32_t column = table[x], row = table[job.planes.width + y];
        return {column, row, column >= 0 && row >= 0};
      }
    }
  }

  HEADRACE_HD void nearest(const WarpJob& job, int32_t x, int32_t y, Pixel& pixel) const {
    const Nearest at = nearest_of(job, x, y);
    if (!at.inside) return fill(job, pixel);
    const uint8_t* const first = sample(job, at.column, at.row);
    each_channel(job, pixel, [&](int c) { return uint32_t{first[c * job.planes.from_plane]}; });
  }

  HEADRACE_HD void torch_bilinear(const WarpJob& job, int32_t x, int32_t y, Pixel& pixel) const {
    const SourcePosition<float> place = torch_position_of(job, x, y);
    const TorchSquare square = torch_square(place.x, place.y, job.source_width, job.source_height);
    const float share = job.fills ? share_inside(square) : 1.0f;
    const uint8_t* const first = sample(job, square.column, square.row);
    each_channel(job, pixel, [&](int c) {
      const uint8_t* const plane = first + c * job.planes.from_plane;
      const auto at = [&](int k) {
        return square.inside[k] ? floats::of(plane[k / 2 * job.planes.from_row + k % 2]) : 0.0f;
      };
      float value = blended_as_torch(square.weights, at(0), at(1), at(2), at(3));
      if (job.fills) value = filled_as_torch(value, job.blended_fill[c], share);
      return floats::rounded_byte(value);
    });
  }

  HEADRACE_HD void pillow_bilinear(const WarpJob& job, int32_t x, int32_t y, Pixel& pixel) const {
    const SourcePosition<double> place = pillow_position_of(job, x, y);
    if (!within(place.x, place.y, job.source_width, job.source_height)) return fill(job, pixel);
    const double left = floats::floor(place.x - 0.5), top = floats::floor(place.y - 0.5);
    const double dx = place.x - 0.5 - left, dy = place.y - 0.5 - top;
    // Repeats the edge.
    const auto column = static_cast<int32_t>(left), row = static_cast<int32_t>(top);
    const int32_t west = column < 0 ? 0 : column, north = row < 0 ? 0 : row;
    const int32_t east = column + 1 < job.source_width ? column + 1 : west;
    const int32_t south = row + 1 < job.source_height ? row + 1 : north;
    const uint8_t *const above = sample(job, 0, north), *const below = sample(job, 0, south);
    each_channel(job, pixel, [&](int c) {
      const int64_t plane = c * job.planes.from_plane;
      return static_cast<uint32_t>(bilinear_of(above[plane + west], above[plane + east],
                                               below[plane + west], below[plane + east], dx, dy));
    });
  }
};

}  // namespace headrace
