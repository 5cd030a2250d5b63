// SPDX-License-Identifier: Apache-2.0
// Pillow's bilinear warps in lanes, which are doubles cut off. Included by each level's file after
// its lanes, between its target pragmas. Internal to kernels/.
//
// Note [Blending in floats]: what is cut off only shows whether it has reached a whole number. So
// values are computed in float32, and where one comes closer to a whole number than float32 can
// tell, its block of lanes is computed again in doubles. Fractions of places are off by less than
// 2^-21 each, which is 2.4e-4 of a value (of 255, along both axes), and three fused operations add
// less than 1e-4; kDoubtful leaves 4.8e-4. Where the four pixels are one value it is exact, unless
// the place is so close to other pixels that they may be the right ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "headrace/kernels/warps/warp_rows_levels.h"

namespace headrace::HEADRACE_LEVEL {
namespace {

constexpr float kFixedPoint = 8192.0f;  // added to a value it leaves ten bits after the point
constexpr int kPointAt = 10, kDoubtful = (1 << kPointAt) - 1;  // none of these set: within 2^-11

// In doubles throughout.
void bilinear_in_doubles(const PixelWords& source, const double* x, const double* y, int count,
                         uint32_t fill, int channels, uint8_t* const out[], int to) {
  const auto right_end = static_cast<double>(source.width),
             low_end = static_cast<double>(source.height);
  for (int i = 0; i < count; i += kDoubles) {
    Doubles at_x = Load(x + i), at_y = Load(y + i);
    const FewMask inside = And(InRange(at_x, right_end), InRange(at_y, low_end));
    at_x = Sub(at_x, Set(0.5));
    at_y = Sub(at_y, Set(0.5));
    const Doubles left = Floor(at_x), top = Floor(at_y);
    const Doubles dx = Sub(at_x, left), dy = Sub(at_y, top);
    const Few first = Add(Mul(TruncToInts(top), SetFew(source.stride)), TruncToInts(left));
    Few pixels[4];
    for (int k = 0; k < 4; ++k) {
      const Few next = SetFew(k / 2 * source.stride + k % 2);
      pixels[k] = MaskedGatherOr(source.pixels, Add(first, next), inside, SetFew(0));
    }
    for (int c = 0; c < channels; ++c) {
      const auto along = [&](int k) {
        const Doubles a = ToDoubles(LowBytes(pixels[k], 8 * c));
        const Doubles b = ToDoubles(LowBytes(pixels[k + 1], 8 * c));
        return Add(a, Mul(Sub(b, a), dx));
      };
      const Doubles above = along(0);
      const Few value = TruncToInts(Add(above, Mul(Sub(along(2), above), dy)));
      const int outside = static_cast<int>((fill >> (8 * c)) & 0xff);
      StoreLowBytes(out[c] + to + i, IfThenElse(inside, value, SetFew(outside)));
    }
  }
}

// The pixels about each place, and how far it is from the first one's middle.
struct Square {
  Ints column, row;  // of the first one
  Floats dx, dy;
  Mask inside;
};

inline Mask away_from_ends(Floats share) {
  return And(Lt(Set(0x1p-20f), share), Lt(share, Set(1 - 0x1p-20f)));
}

// False where doubles must decide; else the values are stored, and those outside are any.
[[gnu::always_inline]] inline bool blended_in_floats(const PixelWords& source, const Square& at,
                                                     const Pickers& pickers, int channels,
                                                     uint8_t* const out[], int to) {
  const Ints first = Add(Mul(at.row, Set(source.stride)), at.column);
  Ints pixels[4];
  GatherPairs(source.pixels, first, at.inside, pixels[0], pixels[1]);
  GatherPairs(source.pixels, Add(first, Set(source.stride)), at.inside, pixels[2], pixels[3]);
  for (int c = 0; c < channels; ++c) {
    const Ints from = pickers.of[c];
    const Floats nw = ToFloats(TableLookupBytes(pixels[0], from)),
                 ne = ToFloats(TableLookupBytes(pixels[1], from));
    const Floats sw = ToFloats(TableLookupBytes(pixels[2], from)),
                 se = ToFloats(TableLookupBytes(pixels[3], from));
    const Floats above = MulAdd(Sub(ne, nw), at.dx, nw);
    const Floats beneath = MulAdd(Sub(se, sw), at.dx, sw);
    const Floats blend = MulAdd(Sub(beneath, above), at.dy, above);
    const Ints fixed = BitsOf(Add(blend, Set(kFixedPoint)));
    StoreLowBytes(out[c] + to, ShiftRight(fixed, kPointAt));
    const Mask doubtful = And(HasNoBits(fixed, kDoubtful), at.inside);
    if (!AnyTrue(doubtful)) continue;
    const Mask one_value = And(And(Eq(nw, ne), Eq(sw, se)), Eq(above, beneath));
    const Mask exact = And(one_value, And(away_from_ends(at.dx), away_from_ends(at.dy)));
    if (AnyTrue(Without(doubtful, exact))) return false;
  }
  return true;
}

void bilinear_as_pillow_in_lanes(const PixelWords& source, const double* x, const double* y,
                                 int count, uint32_t fill, int channels, uint8_t* const out[]) {
  const auto right_end = static_cast<double>(source.width),
             low_end = static_cast<double>(source.height);
  const Pickers pickers;
  for (int i = 0; i < count; i += kLanes) {
    Few columns[2], rows[2];
    Doubles dx[2], dy[2];
    FewMask inside[2];
    for (int half = 0; half < 2; ++half) {
      Doubles at_x = Load(x + i + half * kDoubles), at_y = Load(y + i + half * kDoubles);
      inside[half] = And(InRange(at_x, right_end), InRange(at_y, low_end));
      at_x = Sub(at_x, Set(0.5));
      at_y = Sub(at_y, Set(0.5));
      const Doubles left = Floor(at_x), top = Floor(at_y);
      dx[half] = Sub(at_x, left);
      dy[half] = Sub(at_y, top);
      columns[half] = TruncToInts(left);
      rows[half] = TruncToInts(top);
    }
    const Square at{.column = Combine(columns[0], columns[1]),
                    .row = Combine(rows[0], rows[1]),
                    .dx = ToFloats(dx[0], dx[1]),
                    .dy = ToFloats(dy[0], dy[1]),
                    .inside = Combine(inside[0], inside[1])};
    if (!AnyTrue(at.inside)) {
      for (int c = 0; c < channels; ++c) {
        StoreLowBytes(out[c] + i, Set(static_cast<int>(fill >> (8 * c))));
      }
    } else if (AnyTrue(Without(FirstN(kLanes), at.inside)) ||
               !blended_in_floats(source, at, pickers, channels, out, i)) {
      bilinear_in_doubles(source, x + i, y + i, kLanes, fill, channels, out, i);
    }
  }
}

// One coordinate along a row of an affine map, as Pillow computes it. It never turns back.
struct AlongRow {
  double by, rest, last;
  int first;

  double at(int i) const { return by * (first + i + 0.5) + rest + last; }
};

// The first of `count` at which `holds`, which never ends; looked for from about there.
template <class Holds>
int first_where(double about, int count, const Holds& holds) {
  int at = about > 0 ? static_cast<int>(std::min<double>(about, count)) : 0;
  while (at > 0 && holds(at - 1)) --at;
  while (at < count && !holds(at)) ++at;
  return at;
}

// Narrows begin..end to where the coordinate is from 0 up to `extent`.
void keep_inside(const AlongRow& along, double extent, int& begin, int& end) {
  const auto from_0 = [&](int i) { return along.at(i) >= 0; };
  const auto to_end = [&](int i) { return along.at(i) < extent; };
  if (along.by == 0) {
    if (!from_0(0) || !to_end(0)) end = 0;
    return;
  }
  const bool grows = along.by > 0;
  const double start = along.at(0), at_0 = -start / along.by, at_end = (extent - start) / along.by;
  const int enters = grows ? first_where(at_0, end, from_0) : first_where(at_end, end, to_end);
  const int leaves = first_where(grows ? at_end : at_0, end, [&](int i) {
    return i >= enters && !(grows ? to_end(i) : from_0(i));
  });
  begin = std::max(begin, enters);
  end = std::min(end, leaves);
}

// 0 <= x < width, and the same of y; as the nearest pixel's offset.
void cut_off_offsets_in_lanes(const double* x, const double* y, int count, int width, int height,
                              int32_t* offsets) {
  const auto right_end = static_cast<double>(width), low_end = static_cast<double>(height);
  for (int i = 0; i < count; i += kDoubles) {
    const Doubles at_x = Load(x + i), at_y = Load(y + i);
    const FewMask inside = And(InRange(at_x, right_end), InRange(at_y, low_end));
    const Few offset = Add(Mul(TruncToInts(at_y), SetFew(width)), TruncToInts(at_x));
    Store(offsets + i, IfThenElse(inside, offset, SetFew(kOutside)));
  }
}

// Places of a block of lanes: integers from the first one's, with 24 bits after the point.
struct SteppedLanes {
  static constexpr int kPoint = 24;
  explicit SteppedLanes(double by)
      : offsets(Mul(Iota(), Set(static_cast<int>(std::nearbyint(by * 0x1p24))))) {}

  void from(double first, Ints& whole, Floats& fraction) const {
    const double low = std::floor(first);
    const Ints at = Add(Set(static_cast<int>((first - low) * 0x1p24)), offsets);
    whole = Add(Set(static_cast<int>(low)), ShiftRightSigned(at, kPoint));
    fraction = Mul(ToFloats(AndBits(at, (1 << kPoint) - 1)), Set(0x1p-24f));
  }

  const Ints offsets;
};

void affine_as_pillow_in_lanes(const PixelWords& source, const double coefficients[6], int first,
                               int row, int count, uint32_t fill, int channels,
                               uint8_t* const out[]) {
  const double* const a = coefficients;
  const AlongRow x{a[0], a[1] * (row + 0.5), a[2], first}, y{a[3], a[4] * (row + 0.5), a[5], first};
  const auto in_doubles = [&](int i) {
    double at_x[kLanes], at_y[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      at_x[lane] = x.at(i + lane);
      at_y[lane] = y.at(i + lane);
    }
    bilinear_in_doubles(source, at_x, at_y, kLanes, fill, channels, out, i);
  };
  constexpr double kMostStep = 4;  // what SteppedLanes can say
  int begin = 0, end = count;
  if (!(std::abs(a[0]) < kMostStep && std::abs(a[3]) < kMostStep &&
        std::isfinite(x.rest + x.last) && std::isfinite(y.rest + y.last))) {
    for (int i = 0; i < count; i += kLanes) in_doubles(i);
    return;
  }
  keep_inside(x, source.width, begin, end);
  keep_inside(y, source.height, begin, end);
  begin = std::min(begin, end);
  const auto fill_in = [&](int from, int to) {
    for (int c = 0; c < channels; ++c) {
      std::memset(out[c] + from, static_cast<int>((fill >> (8 * c)) & 0xff), size_t(to - from));
    }
  };
  fill_in(0, begin);
  const SteppedLanes step_x(a[0]), step_y(a[3]);
  const Pickers pickers;
  for (int i = begin; i < end; i += kLanes) {
    Square at{.column = Set(0),
              .row = Set(0),
              .dx = Set(0.0f),
              .dy = Set(0.0f),
              .inside = FirstN(end - i)};
    step_x.from(x.at(i) - 0.5, at.column, at.dx);
    step_y.from(y.at(i) - 0.5, at.row, at.dy);
    if (!blended_in_floats(source, at, pickers, channels, out, i)) in_doubles(i);
  }
  fill_in(end, count);
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL
