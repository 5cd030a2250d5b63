// SPDX-License-Identifier: Apache-2.0
// Warps as Pillow computes them: truncated doubles.
//
// Note [Blending in floats]: after truncation, only the whole number matters. So values are
// computed in float32, and if one is too close to a whole number for float32 to decide, its block
// of lanes is computed again in doubles. Fractions of positions are off by less than 2^-21 each,
// which is 2.4e-4 of a value (of 255, along both axes), and three fused operations add less than
// 1e-4; kDoubtful leaves 4.8e-4. Where the four pixels are equal, the value is exact, unless the
// position is so close to other pixels that these may be the right ones.
#ifndef HEADRACE_LEVEL

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "headrace/kernels/warps/warp_rows.h"

namespace headrace {
namespace scalar {
namespace {

uint32_t byte_of(uint32_t pixel, int channel) { return (pixel >> (8 * channel)) & 0xff; }

// A pixel of Pillow's filters: the four or sixteen pixels around a position; those beyond the edge
// repeat the edge.
struct Neighbors {
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

// Calls `value(neighbors, dx, dy, channel)` for each position inside; returns a double from 0 to
// 255.
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
    const Neighbors near{source, static_cast<int>(left), static_cast<int>(top)};
    for (int c = 0; c < channels; ++c) {
      out[c][i] = static_cast<uint8_t>(value(near, px - left, py - top, c));
    }
  }
}

void pillow_positions(const double coefficients[8], bool divides, int first, int row, int count,
                      double* x, double* y) {
  for (int i = 0; i < count; ++i) {
    const auto place = pillow_position(coefficients, divides, first + i + 0.5, row + 0.5);
    x[i] = place.x;
    y[i] = place.y;
  }
}

void bilinear_as_pillow(const PixelWords& source, const double* x, const double* y, int count,
                        uint32_t fill, int channels, uint8_t* const out[]) {
  as_pillow(source, x, y, count, fill, channels, out,
            [](const Neighbors& near, double dx, double dy, int c) {
              return bilinear_of(near.at(0, 0, c), near.at(1, 0, c), near.at(0, 1, c),
                                 near.at(1, 1, c), dx, dy);
            });
}

void bicubic_as_pillow(const PixelWords& source, const double* x, const double* y, int count,
                       uint32_t fill, int channels, uint8_t* const out[]) {
  as_pillow(source, x, y, count, fill, channels, out,
            [](const Neighbors& near, double dx, double dy, int c) {
              double rows[4];
              for (int r = 0; r < 4; ++r) {
                rows[r] = cubic(near.at(-1, r - 1, c), near.at(0, r - 1, c), near.at(1, r - 1, c),
                                near.at(2, r - 1, c), dx);
              }
              return std::clamp(cubic(rows[0], rows[1], rows[2], rows[3], dy), 0.0, 255.0);
            });
}

void affine_as_pillow(const PixelWords& source, const double coefficients[6], int first, int row,
                      int count, uint32_t fill, int channels, uint8_t* const out[]) {
  constexpr int kPart = 64;
  double x[kPart], y[kPart];
  for (int begin = 0; begin < count; begin += kPart) {
    const int part = std::min(kPart, count - begin);
    uint8_t* to[4] = {};
    for (int c = 0; c < channels; ++c) to[c] = out[c] + begin;
    pillow_positions(coefficients, false, first + begin, row, part, x, y);
    scalar::bilinear_as_pillow(source, x, y, part, fill, channels, to);
  }
}

}  // namespace
}  // namespace scalar
}  // namespace headrace

#define HEADRACE_OWN_SCALAR
#define HEADRACE_NO_NEON
#define HEADRACE_KERNEL "headrace/kernels/warps/pillow_warp_rows.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {

void pillow_positions(const double coefficients[8], bool divides, int first, int row, int count,
                      double* x, double* y) {
  HEADRACE_BY_LEVEL(pillow_positions)(coefficients, divides, first, row, count, x, y);
}

void bilinear_as_pillow(const PixelWords& source, const double* x, const double* y, int count,
                        uint32_t fill, int channels, uint8_t* const out[]) {
  HEADRACE_BY_LEVEL(bilinear_as_pillow)(source, x, y, count, fill, channels, out);
}

void affine_as_pillow(const PixelWords& source, const double coefficients[6], int first, int row,
                      int count, uint32_t fill, int channels, uint8_t* const out[]) {
  HEADRACE_BY_LEVEL(affine_as_pillow)(source, coefficients, first, row, count, fill, channels, out);
}

void bicubic_as_pillow(const PixelWords& source, const double* x, const double* y, int count,
                       uint32_t fill, int channels, uint8_t* const out[]) {
  HEADRACE_BY_LEVEL(bicubic_as_pillow)(source, x, y, count, fill, channels, out);
}

}  // namespace headrace

#else  // at each SIMD level

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

void pillow_positions(const double coefficients[8], bool divides, int first, int row, int count,
                      double* x, double* y) {
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

constexpr float kFixedPoint = 8192.0f;  // adding it to a value leaves ten fraction bits
constexpr int kPointAt = 10, kDoubtful = (1 << kPointAt) - 1;  // none of these set: within 2^-11

// Computed in double throughout.
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

// The pixels around each position, and its distance from the first one's center.
struct Square {
  Ints column, row;  // of the first one
  Floats dx, dy;
  Mask inside;
};

inline Mask away_from_ends(Floats share) {
  return And(Lt(Set(0x1p-20f), share), Lt(share, Set(1 - 0x1p-20f)));
}

// False if doubles must decide; otherwise the values are stored, those outside being unspecified.
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
    StoreLowBytes(out[c] + to, ShiftRight<kPointAt>(fixed));
    const Mask doubtful = And(HasNoBits(fixed, kDoubtful), at.inside);
    if (!AnyTrue(doubtful)) continue;
    const Mask one_value = And(And(Eq(nw, ne), Eq(sw, se)), Eq(above, beneath));
    const Mask exact = And(one_value, And(away_from_ends(at.dx), away_from_ends(at.dy)));
    if (AnyTrue(AndNot(exact, doubtful))) return false;
  }
  return true;
}

void bilinear_as_pillow(const PixelWords& source, const double* x, const double* y, int count,
                        uint32_t fill, int channels, uint8_t* const out[]) {
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
    } else if (AnyTrue(AndNot(at.inside, FirstN(kLanes))) ||
               !blended_in_floats(source, at, pickers, channels, out, i)) {
      bilinear_in_doubles(source, x + i, y + i, kLanes, fill, channels, out, i);
    }
  }
}

inline Doubles at_cubic(Doubles v2, Doubles p2, Doubles p3, Doubles p4, Doubles d) {
  return Add(v2, Mul(d, Add(p2, Mul(d, Add(p3, Mul(d, p4))))));
}

// For bytes: everything except the powers is an integer.
inline Doubles cubic(const Few v[4], Doubles d) {
  const Few fall = Sub(v[0], v[1]);
  const Few p3 = Sub(Add(Add(fall, fall), v[2]), v[3]), p4 = Sub(Sub(v[3], v[2]), fall);
  return at_cubic(ToDoubles(v[1]), ToDoubles(Sub(v[2], v[0])), ToDoubles(p3), ToDoubles(p4), d);
}

// In the order of scalar::cubic().
inline Doubles cubic(const Doubles v[4], Doubles d) {
  const Doubles p3 = Sub(Add(Mul(Set(2.0), Sub(v[0], v[1])), v[2]), v[3]);
  const Doubles p4 = Add(Sub(Sub(v[1], v[0]), v[2]), v[3]);
  return at_cubic(v[1], Sub(v[2], v[0]), p3, p4, d);
}

void bicubic_as_pillow(const PixelWords& source, const double* x, const double* y, int count,
                       uint32_t fill, int channels, uint8_t* const out[]) {
  const auto right_end = static_cast<double>(source.width),
             low_end = static_cast<double>(source.height);
  const auto clamped = [&](Few v, int end) { return Min(Max(v, SetFew(0)), SetFew(end - 1)); };
  for (int i = 0; i < count; i += kDoubles) {
    Doubles at_x = Load(x + i), at_y = Load(y + i);
    const FewMask counted = InRange(Add(IotaDoubles(), Set(double(i))), double(count));
    const FewMask inside = And(And(InRange(at_x, right_end), InRange(at_y, low_end)), counted);
    at_x = Sub(at_x, Set(0.5));
    at_y = Sub(at_y, Set(0.5));
    const Doubles left = Floor(at_x), top = Floor(at_y);
    const Doubles dx = Sub(at_x, left), dy = Sub(at_y, top);
    const Few column = TruncToInts(left), line = TruncToInts(top);
    Few columns[4], pixels[4][4];
    for (int k = 0; k < 4; ++k) columns[k] = clamped(Add(column, SetFew(k - 1)), source.width);
    for (int r = 0; r < 4; ++r) {
      const Few row = clamped(Add(line, SetFew(r - 1)), source.height);
      const Few first = Mul(row, SetFew(source.stride));
      for (int k = 0; k < 4; ++k) {
        pixels[r][k] = MaskedGatherOr(source.pixels, Add(first, columns[k]), inside, SetFew(0));
      }
    }
    for (int c = 0; c < channels; ++c) {
      Doubles rows[4];
      for (int r = 0; r < 4; ++r) {
        Few values[4];
        for (int k = 0; k < 4; ++k) values[k] = LowBytes(pixels[r][k], 8 * c);
        rows[r] = cubic(values, dx);
      }
      const Few value = Min(Max(TruncToInts(cubic(rows, dy)), SetFew(0)), SetFew(255));
      const int outside = static_cast<int>((fill >> (8 * c)) & 0xff);
      StoreLowBytes(out[c] + i, IfThenElse(inside, value, SetFew(outside)));
    }
  }
}

// One coordinate along a row of an affine map, as Pillow computes it. It is monotonic.
struct AlongRow {
  double by, rest, last;
  int first;

  double at(int i) const { return by * (first + i + 0.5) + rest + last; }
};

// The first of `count` at which `holds` is true, given that it stays true from there; searches from
// a guess.
template <class Holds>
int first_where(double about, int count, const Holds& holds) {
  int at = about > 0 ? static_cast<int>(std::min<double>(about, count)) : 0;
  while (at > 0 && holds(at - 1)) --at;
  while (at < count && !holds(at)) ++at;
  return at;
}

// Narrows begin..end to where the coordinate is in [0, extent).
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

// Positions of a block of lanes: integers relative to the first one's, with 24 fraction bits.
struct SteppedLanes {
  static constexpr int kPoint = 24;
  explicit SteppedLanes(double by)
      : offsets(Mul(Iota(), Set(static_cast<int>(std::nearbyint(by * 0x1p24))))) {}

  void from(double first, Ints& whole, Floats& fraction) const {
    const double low = std::floor(first);
    const Ints at = Add(Set(static_cast<int>((first - low) * 0x1p24)), offsets);
    whole = Add(Set(static_cast<int>(low)), ShiftRightSigned<kPoint>(at));
    fraction = Mul(ToFloats(And(at, Set((1 << kPoint) - 1))), Set(0x1p-24f));
  }

  const Ints offsets;
};

void affine_as_pillow(const PixelWords& source, const double coefficients[6], int first, int row,
                      int count, uint32_t fill, int channels, uint8_t* const out[]) {
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
  constexpr double kMaxStep = 4;  // the limit of SteppedLanes
  int begin = 0, end = count;
  if (!(std::abs(a[0]) < kMaxStep && std::abs(a[3]) < kMaxStep && std::isfinite(x.rest + x.last) &&
        std::isfinite(y.rest + y.last))) {
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

#endif
