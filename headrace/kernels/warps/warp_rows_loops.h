// SPDX-License-Identifier: Apache-2.0
// The loops of warp_rows.cc in lanes. Included by each level's file after its lanes
// (float_lanes_..., gather_lanes_...) and warp_rows_pillow_loops.h, between its target pragmas.
// Internal to kernels/.
#pragma once

#include "headrace/kernels/warps/warp_rows_levels.h"

namespace headrace {
namespace {

constexpr int kPixelBlock = 4 * kLanes;

void pack(const uint8_t* const planes[], int channels, int64_t count, uint32_t marks,
          uint32_t* pixels) {
  const Numbers marked = all(static_cast<int>((marks >> 24) * 0x01010101));
  for (int64_t i = 0; i < count; i += kPixelBlock) {
    Numbers block[4];
    load_planes(planes, channels, i, marked, block);
    auto* const to = reinterpret_cast<int32_t*>(pixels) + i;
    store(to, block[0]);
    store(to + kLanes, block[1]);
    store(to + 2 * kLanes, block[2]);
    store(to + 3 * kLanes, block[3]);
  }
}

Floats dot_of(const float* by, float last, Floats x, Floats y, bool fused_sum) {
  const Floats first = product(x, all(by[0]));
  const Floats two = fused_sum ? fused(y, all(by[1]), first) : sum(first, product(y, all(by[1])));
  return sum(two, all(last));
}

Floats place_of(Floats grid, float half) {
  return fused(sum(grid, all(1.0f)), all(half), all(-0.5f));
}

void torch_places_in_lanes(const TorchGrid& of, int row, int count, float* x, float* y) {
  const TorchGrid grid = of;  // which no store may change
  const Floats at_y = all(grid.first_row + static_cast<float>(row));
  for (int i = 0; i < count; i += kLanes) {
    const Floats at_x = sum(all(grid.first_column), floats_of(sum(all(i), lane_numbers())));
    Floats to_x = dot_of(grid.x.data(), grid.x[2], at_x, at_y, grid.fused);
    Floats to_y = dot_of(grid.y.data(), grid.y[2], at_x, at_y, grid.fused);
    if (grid.divides) {
      const Floats by = dot_of(grid.w.data(), 1.0f, at_x, at_y, grid.fused);
      to_x = difference(quotient(to_x, by), all(1.0f));
      to_y = difference(quotient(to_y, by), all(1.0f));
    }
    store(x + i, place_of(to_x, grid.half_width));
    store(y + i, place_of(to_y, grid.half_height));
  }
}

void displaced_places_in_lanes(const DisplacedRow& row, int count, float* x, float* y) {
  for (int i = 0; i < count; i += kLanes) {
    const Floats to_x = sum(load(row.identity_x + i), load(row.by_x + i));
    const Floats to_y = sum(all(row.identity_y), load(row.by_y + i));
    store(x + i, place_of(to_x, row.half_width));
    store(y + i, place_of(to_y, row.half_height));
  }
}

// REQUIRES: no more pixels than an int counts.
Numbers offset_of(Numbers column, Numbers row, int width) {
  return sum(product(row, all(width)), column);
}

void nearest_offsets_in_lanes(const float* x, const float* y, int count, int width, int height,
                              int32_t* offsets) {
  for (int i = 0; i < count; i += kLanes) {
    const Numbers column = nearest(load(x + i)), row = nearest(load(y + i));
    const Mask inside = both(below(column, width), below(row, height));
    store(offsets + i, chosen(inside, offset_of(column, row, width), all(int{kOutside})));
  }
}

// The share of a place that lies in the picture, where no byte of the pixels says it.
Floats share_of(const PixelWords& source, Numbers column, Numbers row, const Floats weights[4]) {
  const Numbers one = all(1);
  const Mask in_columns[2] = {below(column, source.width), below(sum(column, one), source.width)};
  const Mask in_rows[2] = {below(row, source.height), below(sum(row, one), source.height)};
  Floats share = all(0.0f);
  for (int k = 0; k < 4; ++k) {
    const Floats counted = kept(both(in_columns[k % 2], in_rows[k / 2]), all(1.0f));
    share = k ? fused(counted, weights[k], share) : product(counted, weights[k]);
  }
  return share;
}

void bilinear_as_torch_in_lanes(const PixelWords& source, const float* x, const float* y, int count,
                                const float* fill, int channels, uint8_t* const out[]) {
  const Numbers one = all(1);
  const Pickers pickers;
  for (int i = 0; i < count; i += kLanes) {
    const Floats at_x = load(x + i), at_y = load(y + i);
    const Floats left = floor_of(at_x), top = floor_of(at_y);
    const Floats west = difference(at_x, left), east = difference(all(1.0f), west);
    const Floats north = difference(at_y, top), south = difference(all(1.0f), north);
    const Numbers column = cut_off(left), row = cut_off(top);
    // Where one of the four pixels is the picture's.
    const Mask seen =
        both(below(sum(column, one), source.width + 1), below(sum(row, one), source.height + 1));
    if (!any(seen) && are_numbers(sum(west, north))) {
      for (int c = 0; c < channels; ++c) store_rounded(out[c] + i, all(fill ? fill[c] : 0.0f));
      continue;
    }
    const Floats weights[4] = {product(south, east), product(south, west), product(north, east),
                               product(north, west)};
    const Numbers first = offset_of(column, row, source.stride);
    Numbers pixels[4];
    gather_pairs(source.pixels, first, seen, pixels[0], pixels[1]);
    gather_pairs(source.pixels, sum(first, all(source.stride)), seen, pixels[2], pixels[3]);
    const auto blended = [&](int channel) {
      const Numbers from = pickers.of[channel];
      Floats value = product(floats_of(picked(pixels[0], from)), weights[0]);
      for (int k = 1; k < 4; ++k)
        value = fused(floats_of(picked(pixels[k], from)), weights[k], value);
      return value;
    };
    if (!fill) {
      for (int c = 0; c < channels; ++c) store_rounded(out[c] + i, blended(c));
      continue;
    }
    const Floats share = channels < 4 ? blended(3) : share_of(source, column, row, weights);
    for (int c = 0; c < channels; ++c) {
      const Floats filled = all(fill[c]);
      store_rounded(out[c] + i, sum(product(difference(blended(c), filled), share), filled));
    }
  }
}

void pillow_places_in_lanes(const double coefficients[8], bool divides, int first, int row,
                            int count, double* x, double* y) {
  const double* const a = coefficients;
  const double at_y = row + 0.5;
  const auto dot = [&](const double* by, double last, Doubles at_x) {
    return sum(sum(product(all(by[0]), at_x), all(by[1] * at_y)), all(last));
  };
  for (int i = 0; i < count; i += kDoubles) {
    const Doubles at_x = sum(all(first + i + 0.5), lane_doubles());
    Doubles to_x = dot(a, a[2], at_x), to_y = dot(a + 3, a[5], at_x);
    if (divides) {
      const Doubles by = dot(a + 6, 1.0, at_x);
      to_x = quotient(to_x, by);
      to_y = quotient(to_y, by);
    }
    store(x + i, to_x);
    store(y + i, to_y);
  }
}

void fixed_offsets_in_lanes(const FixedRow& row, int count, int width, int height,
                            int32_t* offsets) {
  Numbers x = sum(all(row.x), product(lane_numbers(), all(row.step_x)));
  Numbers y = sum(all(row.y), product(lane_numbers(), all(row.step_y)));
  const Numbers step_x = product(all(kLanes), all(row.step_x));
  const Numbers step_y = product(all(kLanes), all(row.step_y));
  for (int i = 0; i < count; i += kLanes) {
    const Numbers column = shifted_down_signed(x, 16), at = shifted_down_signed(y, 16);
    const Mask inside = both(below(column, width), below(at, height));
    store(offsets + i, chosen(inside, offset_of(column, at, width), all(int{kOutside})));
    x = sum(x, step_x);
    y = sum(y, step_y);
  }
}

inline Numbers pixels_at(const uint32_t* pixels, const int32_t* offsets, Numbers filled) {
  const Numbers at = load(offsets);
  return gathered(pixels, at, below(at, kMostOffset), filled);
}

void take(const uint32_t* pixels, const int32_t* offsets, int count, uint32_t fill, int channels,
          uint8_t* const out[]) {
  const Numbers filled = all(static_cast<int>(fill));
  for (int i = 0; i < count; i += kPixelBlock) {
    const Numbers block[4] = {pixels_at(pixels, offsets + i, filled),
                              pixels_at(pixels, offsets + i + kLanes, filled),
                              pixels_at(pixels, offsets + i + 2 * kLanes, filled),
                              pixels_at(pixels, offsets + i + 3 * kLanes, filled)};
    store_planes(block, channels, out, i);
  }
}

constexpr WarpKernels kWarpKernels{
    pack,
    torch_places_in_lanes,
    displaced_places_in_lanes,
    nearest_offsets_in_lanes,
    bilinear_as_torch_in_lanes,
    pillow_places_in_lanes,
    bilinear_as_pillow_in_lanes,
    affine_as_pillow_in_lanes,
    cut_off_offsets_in_lanes,
    fixed_offsets_in_lanes,
    take,
};

}  // namespace
}  // namespace headrace
