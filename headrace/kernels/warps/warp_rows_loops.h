// SPDX-License-Identifier: Apache-2.0
// The loops of warp_rows.cc in lanes. Included by each level's file after its lanes
// (lanes/) and warp_rows_pillow_loops.h, between its target pragmas.
// Internal to kernels/.
#pragma once

#include "headrace/kernels/warps/warp_rows_levels.h"

namespace headrace::HEADRACE_LEVEL {
namespace {

constexpr int kPixelBlock = 4 * kLanes;

void pack(const uint8_t* const planes[], int channels, int64_t count, uint32_t marks,
          uint32_t* pixels) {
  const Ints marked = Set(static_cast<int>((marks >> 24) * 0x01010101));
  for (int64_t i = 0; i < count; i += kPixelBlock) {
    Ints block[4];
    LoadPlanes(planes, channels, i, marked, block);
    auto* const to = reinterpret_cast<int32_t*>(pixels) + i;
    Store(to, block[0]);
    Store(to + kLanes, block[1]);
    Store(to + 2 * kLanes, block[2]);
    Store(to + 3 * kLanes, block[3]);
  }
}

Floats dot_of(const float* by, float last, Floats x, Floats y, bool fused_sum) {
  const Floats first = Mul(x, Set(by[0]));
  const Floats two = fused_sum ? MulAdd(y, Set(by[1]), first) : Add(first, Mul(y, Set(by[1])));
  return Add(two, Set(last));
}

Floats place_of(Floats grid, float half) {
  return MulAdd(Add(grid, Set(1.0f)), Set(half), Set(-0.5f));
}

void torch_places_in_lanes(const TorchGrid& of, int row, int count, float* x, float* y) {
  const TorchGrid grid = of;  // which no store may change
  const Floats at_y = Set(grid.first_row + static_cast<float>(row));
  for (int i = 0; i < count; i += kLanes) {
    const Floats at_x = Add(Set(grid.first_column), ToFloats(Add(Set(i), Iota())));
    Floats to_x = dot_of(grid.x.data(), grid.x[2], at_x, at_y, grid.fused);
    Floats to_y = dot_of(grid.y.data(), grid.y[2], at_x, at_y, grid.fused);
    if (grid.divides) {
      const Floats by = dot_of(grid.w.data(), 1.0f, at_x, at_y, grid.fused);
      to_x = Sub(Div(to_x, by), Set(1.0f));
      to_y = Sub(Div(to_y, by), Set(1.0f));
    }
    Store(x + i, place_of(to_x, grid.half_width));
    Store(y + i, place_of(to_y, grid.half_height));
  }
}

void displaced_places_in_lanes(const DisplacedRow& row, int count, float* x, float* y) {
  for (int i = 0; i < count; i += kLanes) {
    const Floats to_x = Add(Load(row.identity_x + i), Load(row.by_x + i));
    const Floats to_y = Add(Set(row.identity_y), Load(row.by_y + i));
    Store(x + i, place_of(to_x, row.half_width));
    Store(y + i, place_of(to_y, row.half_height));
  }
}

// REQUIRES: no more pixels than an int counts.
Ints offset_of(Ints column, Ints row, int width) { return Add(Mul(row, Set(width)), column); }

void nearest_offsets_in_lanes(const float* x, const float* y, int count, int width, int height,
                              int32_t* offsets) {
  for (int i = 0; i < count; i += kLanes) {
    const Ints column = NearestInt(Load(x + i)), row = NearestInt(Load(y + i));
    const Mask inside = And(InRange(column, width), InRange(row, height));
    Store(offsets + i, IfThenElse(inside, offset_of(column, row, width), Set(int{kOutside})));
  }
}

// The share of a place that lies in the picture, where no byte of the pixels says it.
Floats share_of(const PixelWords& source, Ints column, Ints row, const Floats weights[4]) {
  const Ints one = Set(1);
  const Mask in_columns[2] = {InRange(column, source.width),
                              InRange(Add(column, one), source.width)};
  const Mask in_rows[2] = {InRange(row, source.height), InRange(Add(row, one), source.height)};
  Floats share = Set(0.0f);
  for (int k = 0; k < 4; ++k) {
    const Floats counted = IfThenElseZero(And(in_columns[k % 2], in_rows[k / 2]), Set(1.0f));
    share = k ? MulAdd(counted, weights[k], share) : Mul(counted, weights[k]);
  }
  return share;
}

void bilinear_as_torch_in_lanes(const PixelWords& source, const float* x, const float* y, int count,
                                const float* fill, int channels, uint8_t* const out[]) {
  const Ints one = Set(1);
  const Pickers pickers;
  for (int i = 0; i < count; i += kLanes) {
    const Floats at_x = Load(x + i), at_y = Load(y + i);
    const Floats left = Floor(at_x), top = Floor(at_y);
    const Floats west = Sub(at_x, left), east = Sub(Set(1.0f), west);
    const Floats north = Sub(at_y, top), south = Sub(Set(1.0f), north);
    const Ints column = TruncToInts(left), row = TruncToInts(top);
    // Where one of the four pixels is the picture's.
    const Mask seen =
        And(InRange(Add(column, one), source.width + 1), InRange(Add(row, one), source.height + 1));
    if (!AnyTrue(seen) && NoneIsNaN(Add(west, north))) {
      for (int c = 0; c < channels; ++c) StoreRounded(out[c] + i, Set(fill ? fill[c] : 0.0f));
      continue;
    }
    const Floats weights[4] = {Mul(south, east), Mul(south, west), Mul(north, east),
                               Mul(north, west)};
    const Ints first = offset_of(column, row, source.stride);
    Ints pixels[4];
    GatherPairs(source.pixels, first, seen, pixels[0], pixels[1]);
    GatherPairs(source.pixels, Add(first, Set(source.stride)), seen, pixels[2], pixels[3]);
    const auto blended = [&](int channel) {
      const Ints from = pickers.of[channel];
      Floats value = Mul(ToFloats(TableLookupBytes(pixels[0], from)), weights[0]);
      for (int k = 1; k < 4; ++k)
        value = MulAdd(ToFloats(TableLookupBytes(pixels[k], from)), weights[k], value);
      return value;
    };
    if (!fill) {
      for (int c = 0; c < channels; ++c) StoreRounded(out[c] + i, blended(c));
      continue;
    }
    const Floats share = channels < 4 ? blended(3) : share_of(source, column, row, weights);
    for (int c = 0; c < channels; ++c) {
      const Floats filled = Set(fill[c]);
      StoreRounded(out[c] + i, Add(Mul(Sub(blended(c), filled), share), filled));
    }
  }
}

void pillow_places_in_lanes(const double coefficients[8], bool divides, int first, int row,
                            int count, double* x, double* y) {
  const double* const a = coefficients;
  const double at_y = row + 0.5;
  const auto dot = [&](const double* by, double last, Doubles at_x) {
    return Add(Add(Mul(Set(by[0]), at_x), Set(by[1] * at_y)), Set(last));
  };
  for (int i = 0; i < count; i += kDoubles) {
    const Doubles at_x = Add(Set(first + i + 0.5), IotaDoubles());
    Doubles to_x = dot(a, a[2], at_x), to_y = dot(a + 3, a[5], at_x);
    if (divides) {
      const Doubles by = dot(a + 6, 1.0, at_x);
      to_x = Div(to_x, by);
      to_y = Div(to_y, by);
    }
    Store(x + i, to_x);
    Store(y + i, to_y);
  }
}

void fixed_offsets_in_lanes(const FixedRow& row, int count, int width, int height,
                            int32_t* offsets) {
  Ints x = Add(Set(row.x), Mul(Iota(), Set(row.step_x)));
  Ints y = Add(Set(row.y), Mul(Iota(), Set(row.step_y)));
  const Ints step_x = Mul(Set(kLanes), Set(row.step_x));
  const Ints step_y = Mul(Set(kLanes), Set(row.step_y));
  for (int i = 0; i < count; i += kLanes) {
    const Ints column = ShiftRightSigned(x, 16), at = ShiftRightSigned(y, 16);
    const Mask inside = And(InRange(column, width), InRange(at, height));
    Store(offsets + i, IfThenElse(inside, offset_of(column, at, width), Set(int{kOutside})));
    x = Add(x, step_x);
    y = Add(y, step_y);
  }
}

inline Ints pixels_at(const uint32_t* pixels, const int32_t* offsets, Ints filled) {
  const Ints at = Load(offsets);
  return MaskedGatherOr(pixels, at, InRange(at, kMostOffset), filled);
}

void take(const uint32_t* pixels, const int32_t* offsets, int count, uint32_t fill, int channels,
          uint8_t* const out[]) {
  const Ints filled = Set(static_cast<int>(fill));
  for (int i = 0; i < count; i += kPixelBlock) {
    const Ints block[4] = {pixels_at(pixels, offsets + i, filled),
                           pixels_at(pixels, offsets + i + kLanes, filled),
                           pixels_at(pixels, offsets + i + 2 * kLanes, filled),
                           pixels_at(pixels, offsets + i + 3 * kLanes, filled)};
    StorePlanes(block, channels, out, i);
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
}  // namespace headrace::HEADRACE_LEVEL
