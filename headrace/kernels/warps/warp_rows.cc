// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include "headrace/kernels/warps/warp_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace headrace {
namespace scalar {
namespace {

uint32_t byte_of(uint32_t pixel, int channel) { return (pixel >> (8 * channel)) & 0xff; }

void pack(const uint8_t* const planes[], int channels, int64_t count, uint32_t marks,
          uint32_t* pixels) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t pixel = marks;
    for (int c = 0; c < channels; ++c) pixel |= uint32_t{planes[c][i]} << (8 * c);
    pixels[i] = pixel;
  }
}

void torch_positions(const TorchGrid& grid, int row, int count, float* x, float* y) {
  const float at_y = grid.first_row + static_cast<float>(row);
  for (int i = 0; i < count; ++i) {
    const auto place = torch_position(grid, grid.first_column + static_cast<float>(i), at_y);
    x[i] = place.x;
    y[i] = place.y;
  }
}

void displaced_positions(const DisplacedRow& row, int count, float* x, float* y) {
  for (int i = 0; i < count; ++i) {
    x[i] = std::fma(row.identity_x[i] + row.by_x[i] + 1.0f, row.half_width, -0.5f);
    y[i] = std::fma(row.identity_y + row.by_y[i] + 1.0f, row.half_height, -0.5f);
  }
}

void bilinear_as_torch(const PixelWords& source, const float* x, const float* y, int count,
                       const float* fill, int channels, uint8_t* const out[]) {
  for (int i = 0; i < count; ++i) {
    const TorchSquare square = torch_square(x[i], y[i], source.width, source.height);
    const auto first = ptrdiff_t{square.row} * source.stride + square.column;
    uint32_t pixels[4];
    for (int k = 0; k < 4; ++k) {
      const ptrdiff_t next = ptrdiff_t{k / 2} * source.stride + k % 2;
      pixels[k] = square.inside[k] ? source.pixels[first + next] : 0;
    }
    const float share = share_inside(square);
    for (int c = 0; c < channels; ++c) {
      const auto at = [&](int k) { return static_cast<float>(byte_of(pixels[k], c)); };
      float value = blended_as_torch(square.weights, at(0), at(1), at(2), at(3));
      if (fill) value = filled_as_torch(value, fill[c], share);
      out[c][i] = static_cast<uint8_t>(floats::rounded_byte(value));
    }
  }
}

void nearest_offsets(const float* x, const float* y, int count, int width, int height,
                     int32_t* offsets) {
  for (int i = 0; i < count; ++i) {
    const float column = std::nearbyint(x[i]), row = std::nearbyint(y[i]);
    offsets[i] = within(column, row, width, height)
                     ? static_cast<int32_t>(row) * width + static_cast<int32_t>(column)
                     : kOutside;
  }
}

void truncated_offsets(const double* x, const double* y, int count, int width, int height,
                       int32_t* offsets) {
  for (int i = 0; i < count; ++i) {
    offsets[i] = within(x[i], y[i], width, height)
                     ? static_cast<int32_t>(y[i]) * width + static_cast<int32_t>(x[i])
                     : kOutside;
  }
}

void fixed_offsets(const FixedRow& row, int count, int width, int height, int32_t* offsets) {
  auto x = static_cast<uint32_t>(row.x), y = static_cast<uint32_t>(row.y);
  for (int i = 0; i < count; ++i) {
    const int32_t column = static_cast<int32_t>(x) >> 16, at = static_cast<int32_t>(y) >> 16;
    const bool inside = column >= 0 && column < width && at >= 0 && at < height;
    offsets[i] = inside ? at * width + column : kOutside;
    x += static_cast<uint32_t>(row.step_x);
    y += static_cast<uint32_t>(row.step_y);
  }
}

void take(const uint32_t* pixels, const int32_t* offsets, int count, uint32_t fill, int channels,
          uint8_t* const out[]) {
  for (int i = 0; i < count; ++i) {
    const uint32_t pixel = offsets[i] == kOutside ? fill : pixels[offsets[i]];
    for (int c = 0; c < channels; ++c) out[c][i] = static_cast<uint8_t>(byte_of(pixel, c));
  }
}

}  // namespace
}  // namespace scalar
}  // namespace headrace

#define HEADRACE_OWN_SCALAR
#define HEADRACE_NO_NEON
#define HEADRACE_KERNEL "headrace/kernels/warps/warp_rows.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {

void pack_pixels(const uint8_t* const planes[], int channels, int64_t count, uint32_t marks,
                 uint32_t* pixels) {
  HEADRACE_BY_LEVEL(pack)(planes, channels, count, marks, pixels);
}

void torch_positions(const TorchGrid& grid, int row, int count, float* x, float* y) {
  HEADRACE_BY_LEVEL(torch_positions)(grid, row, count, x, y);
}

void displaced_positions(const DisplacedRow& row, int count, float* x, float* y) {
  HEADRACE_BY_LEVEL(displaced_positions)(row, count, x, y);
}

void bilinear_as_torch(const PixelWords& source, const float* x, const float* y, int count,
                       const float* fill, int channels, uint8_t* const out[]) {
  HEADRACE_BY_LEVEL(bilinear_as_torch)(source, x, y, count, fill, channels, out);
}

void nearest_offsets(const float* x, const float* y, int count, int width, int height,
                     int32_t* offsets) {
  HEADRACE_BY_LEVEL(nearest_offsets)(x, y, count, width, height, offsets);
}

void truncated_offsets(const double* x, const double* y, int count, int width, int height,
                       int32_t* offsets) {
  HEADRACE_BY_LEVEL(truncated_offsets)(x, y, count, width, height, offsets);
}

void fixed_offsets(const FixedRow& row, int count, int width, int height, int32_t* offsets) {
  HEADRACE_BY_LEVEL(fixed_offsets)(row, count, width, height, offsets);
}

void take_pixels(const uint32_t* pixels, const int32_t* offsets, int count, uint32_t fill,
                 int channels, uint8_t* const out[]) {
  HEADRACE_BY_LEVEL(take)(pixels, offsets, count, fill, channels, out);
}

}  // namespace headrace

#else  // at each SIMD level

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

constexpr int kPixelBlock = 4 * kLanes;

// From four registers of pixels: each channel's bytes, one register per channel.
void StorePlanes(const Ints pixels[4], int channels, uint8_t* const out[], int64_t at) {
  constexpr uint8_t kByChannel[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  const Ints by_channel = LoadDup128(kByChannel);
  const Ints p[4] = {
      TableLookupBytes(pixels[0], by_channel), TableLookupBytes(pixels[1], by_channel),
      TableLookupBytes(pixels[2], by_channel), TableLookupBytes(pixels[3], by_channel)};
  const Ints low[2] = {InterleaveLowInts(p[0], p[1]), InterleaveLowInts(p[2], p[3])};
  const Ints high[2] = {InterleaveHighInts(p[0], p[1]), InterleaveHighInts(p[2], p[3])};
  StorePlane(out[0] + at, InterleaveLowPairs(low[0], low[1]));
  if (channels > 1) StorePlane(out[1] + at, InterleaveHighPairs(low[0], low[1]));
  if (channels > 2) StorePlane(out[2] + at, InterleaveLowPairs(high[0], high[1]));
  if (channels > 3) StorePlane(out[3] + at, InterleaveHighPairs(high[0], high[1]));
}
// And the inverse.
void LoadPlanes(const uint8_t* const planes[], int channels, int64_t at, Ints otherwise,
                Ints pixels[4]) {
  const Ints first = LoadPlane(planes[0] + at);
  const Ints second = channels > 1 ? LoadPlane(planes[1] + at) : Set(0);
  const Ints third = channels > 2 ? LoadPlane(planes[2] + at) : Set(0);
  const Ints last = channels > 3 ? LoadPlane(planes[3] + at) : otherwise;
  const Ints low[2] = {InterleaveLowBytes(first, second), InterleaveLowBytes(third, last)};
  const Ints high[2] = {InterleaveHighBytes(first, second), InterleaveHighBytes(third, last)};
  pixels[0] = InterleaveLowWords(low[0], low[1]);
  pixels[1] = InterleaveHighWords(low[0], low[1]);
  pixels[2] = InterleaveLowWords(high[0], high[1]);
  pixels[3] = InterleaveHighWords(high[0], high[1]);
}

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

void torch_positions(const TorchGrid& of, int row, int count, float* x, float* y) {
  const TorchGrid grid = of;  // a copy that no store can alias
  const Floats at_y = Set(grid.first_row + static_cast<float>(row));
  for (int i = 0; i < count; i += kLanes) {
    const Floats at_x = Add(Set(grid.first_column), ToFloats(Add(Set(i), Iota())));
    Floats to_x = dot_of(grid.x, grid.x[2], at_x, at_y, grid.fused);
    Floats to_y = dot_of(grid.y, grid.y[2], at_x, at_y, grid.fused);
    if (grid.divides) {
      const Floats by = dot_of(grid.w, 1.0f, at_x, at_y, grid.fused);
      to_x = Sub(Div(to_x, by), Set(1.0f));
      to_y = Sub(Div(to_y, by), Set(1.0f));
    }
    Store(x + i, place_of(to_x, grid.half_width));
    Store(y + i, place_of(to_y, grid.half_height));
  }
}

void displaced_positions(const DisplacedRow& row, int count, float* x, float* y) {
  for (int i = 0; i < count; i += kLanes) {
    const Floats to_x = Add(Load(row.identity_x + i), Load(row.by_x + i));
    const Floats to_y = Add(Set(row.identity_y), Load(row.by_y + i));
    Store(x + i, place_of(to_x, row.half_width));
    Store(y + i, place_of(to_y, row.half_height));
  }
}

// REQUIRES: the number of pixels fits an int.
Ints offset_of(Ints column, Ints row, int width) { return Add(Mul(row, Set(width)), column); }

void nearest_offsets(const float* x, const float* y, int count, int width, int height,
                     int32_t* offsets) {
  for (int i = 0; i < count; i += kLanes) {
    const Ints column = NearestInt(Load(x + i)), row = NearestInt(Load(y + i));
    const Mask inside = And(InRange(column, width), InRange(row, height));
    Store(offsets + i, IfThenElse(inside, offset_of(column, row, width), Set(int{kOutside})));
  }
}

// 0 <= x < width, and likewise for y; returns the nearest pixel's offset.
void truncated_offsets(const double* x, const double* y, int count, int width, int height,
                       int32_t* offsets) {
  const auto right_end = static_cast<double>(width), low_end = static_cast<double>(height);
  for (int i = 0; i < count; i += kDoubles) {
    const Doubles at_x = Load(x + i), at_y = Load(y + i);
    const FewMask inside = And(InRange(at_x, right_end), InRange(at_y, low_end));
    const Few offset = Add(Mul(TruncToInts(at_y), SetFew(width)), TruncToInts(at_x));
    Store(offsets + i, IfThenElse(inside, offset, SetFew(kOutside)));
  }
}

void fixed_offsets(const FixedRow& row, int count, int width, int height, int32_t* offsets) {
  Ints x = Add(Set(row.x), Mul(Iota(), Set(row.step_x)));
  Ints y = Add(Set(row.y), Mul(Iota(), Set(row.step_y)));
  const Ints step_x = Mul(Set(kLanes), Set(row.step_x));
  const Ints step_y = Mul(Set(kLanes), Set(row.step_y));
  for (int i = 0; i < count; i += kLanes) {
    const Ints column = ShiftRightSigned<16>(x), at = ShiftRightSigned<16>(y);
    const Mask inside = And(InRange(column, width), InRange(at, height));
    Store(offsets + i, IfThenElse(inside, offset_of(column, at, width), Set(int{kOutside})));
    x = Add(x, step_x);
    y = Add(y, step_y);
  }
}

// The weight of a position that is inside the picture, for pixels without a marker byte.
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

void bilinear_as_torch(const PixelWords& source, const float* x, const float* y, int count,
                       const float* fill, int channels, uint8_t* const out[]) {
  const Ints one = Set(1);
  const Pickers pickers;
  for (int i = 0; i < count; i += kLanes) {
    const Floats at_x = Load(x + i), at_y = Load(y + i);
    const Floats left = Floor(at_x), top = Floor(at_y);
    const Floats west = Sub(at_x, left), east = Sub(Set(1.0f), west);
    const Floats north = Sub(at_y, top), south = Sub(Set(1.0f), north);
    const Ints column = TruncToInts(left), row = TruncToInts(top);
    // Where at least one of the four pixels is inside the picture.
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

inline Ints pixels_at(const uint32_t* pixels, const int32_t* offsets, Ints filled) {
  const Ints at = Load(offsets);
  return MaskedGatherOr(pixels, at, InRange(at, kMaxOffset), filled);
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

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
