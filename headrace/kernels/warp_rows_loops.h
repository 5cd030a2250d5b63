// SPDX-License-Identifier: Apache-2.0
// The loops of warp_rows.cc in lanes. Included by each level's file after its lanes
// (float_lanes_..., gather_lanes_...), between its target pragmas. Internal to kernels/.
#pragma once

#include "headrace/kernels/warp_rows_levels.h"

namespace headrace {
namespace {

void pack(const uint8_t* const planes[], int channels, int64_t count, uint32_t* pixels) {
  for (int64_t i = 0; i < count; i += kLanes) {
    Numbers pixel = numbers_at(planes[0] + i);
    for (int c = 1; c < channels; ++c) {
      pixel = joined(pixel, shifted_up(numbers_at(planes[c] + i), 8 * c));
    }
    store(reinterpret_cast<int32_t*>(pixels) + i, pixel);
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

void torch_places_in_lanes(const TorchGrid& grid, int row, int count, float* x, float* y) {
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

void bilinear_as_torch_in_lanes(const PixelWords& source, const float* x, const float* y, int count,
                                const float* fill, int channels, uint8_t* const out[]) {
  const Numbers one = all(1), none = all(0);
  for (int i = 0; i < count; i += kLanes) {
    const Floats at_x = load(x + i), at_y = load(y + i);
    const Floats left = floor_of(at_x), top = floor_of(at_y);
    const Floats west = difference(at_x, left), east = difference(all(1.0f), west);
    const Floats north = difference(at_y, top), south = difference(all(1.0f), north);
    const Floats weights[4] = {product(south, east), product(south, west), product(north, east),
                               product(north, west)};
    const Numbers column = cut_off(left), row = cut_off(top);
    const Mask in_columns[2] = {below(column, source.width), below(sum(column, one), source.width)};
    const Mask in_rows[2] = {below(row, source.height), below(sum(row, one), source.height)};
    const Numbers first = offset_of(column, row, source.width);
    const Numbers next[4] = {none, one, all(source.width), all(source.width + 1)};
    Numbers pixels[4];
    Floats share = all(0.0f);
    for (int k = 0; k < 4; ++k) {
      const Mask inside = both(in_columns[k % 2], in_rows[k / 2]);
      pixels[k] = gathered(source.pixels, sum(first, next[k]), inside, none);
      const Floats counted = kept(inside, all(1.0f));
      share = k ? fused(counted, weights[k], share) : product(counted, weights[k]);
    }
    for (int c = 0; c < channels; ++c) {
      Floats value = all(0.0f);
      for (int k = 0; k < 4; ++k) {
        const Floats sample = floats_of(low_bytes(shifted_down(pixels[k], 8 * c)));
        value = k ? fused(sample, weights[k], value) : product(sample, weights[k]);
      }
      if (fill) {
        value = sum(product(difference(value, all(fill[c])), share), all(fill[c]));
      }
      store_rounded(out[c] + i, value);
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

void bilinear_as_pillow_in_lanes(const PixelWords& source, const double* x, const double* y,
                                 int count, uint32_t fill, int channels, uint8_t* const out[]) {
  const Few width = few(source.width);
  const auto right_end = static_cast<double>(source.width),
             low_end = static_cast<double>(source.height);
  for (int i = 0; i < count; i += kDoubles) {
    Doubles at_x = load(x + i), at_y = load(y + i);
    const FewMask inside = both(below(at_x, right_end), below(at_y, low_end));
    at_x = difference(at_x, all(0.5));
    at_y = difference(at_y, all(0.5));
    const Doubles left = floor_of(at_x), top = floor_of(at_y);
    const Doubles dx = difference(at_x, left), dy = difference(at_y, top);
    const Few column = cut_off(left), row = cut_off(top);
    Few pixels[4];
    for (int k = 0; k < 4; ++k) {
      const Few at_column = clamped(sum(column, few(k % 2)), source.width - 1);
      const Few at_row = clamped(sum(row, few(k / 2)), source.height - 1);
      pixels[k] = gathered(source.pixels, sum(product(at_row, width), at_column), inside, few(0));
    }
    for (int c = 0; c < channels; ++c) {
      const auto along = [&](int k) {
        const Doubles a = doubles_of(low_bytes(pixels[k], 8 * c));
        const Doubles b = doubles_of(low_bytes(pixels[k + 1], 8 * c));
        return sum(a, product(difference(b, a), dx));
      };
      const Doubles above = along(0);
      const Few value = cut_off(sum(above, product(difference(along(2), above), dy)));
      const int outside = static_cast<int>((fill >> (8 * c)) & 0xff);
      store_low_bytes(out[c] + i, chosen(inside, value, few(outside)));
    }
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

void take(const uint32_t* pixels, const int32_t* offsets, int count, uint32_t fill, int channels,
          uint8_t* const out[]) {
  const Numbers filled = all(static_cast<int>(fill));
  for (int i = 0; i < count; i += kLanes) {
    const Numbers at = load(offsets + i);
    const Numbers pixel = gathered(pixels, at, below(at, kMostOffset), filled);
    for (int c = 0; c < channels; ++c) store_low_bytes(out[c] + i, shifted_down(pixel, 8 * c));
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
    fixed_offsets_in_lanes,
    take,
};

}  // namespace
}  // namespace headrace
