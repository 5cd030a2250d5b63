// SPDX-License-Identifier: Apache-2.0
// Logarithms, roots and bounds of rows of floats, in lanes. Included by frame_kernels_loops.h,
// between the target pragmas of a level. Internal to kernels/.
#pragma once

#include <limits>

#include "headrace/kernels/audio/frame_kernels_levels.h"

namespace headrace {
namespace {

// x = (1 + fraction) * 2^exponent, with 1 + fraction from the root of a half to that of two.
struct Parts {
  Floats fraction, exponent;
};
inline Parts parts_of(Floats x) {
  constexpr int kRootOfHalf = 0x3f3504f3;  // as a float
  const Numbers above = difference(bits_of(x), all(kRootOfHalf));
  const Numbers mantissa = sum(common(above, all(0x7fffff)), all(kRootOfHalf));
  return {difference(with_bits(mantissa), all(1.0f)), floats_of(shifted_down_signed<23>(above))};
}

// ln(1 + f) - f, by Cephes' polynomial.
inline Floats log_less_fraction(Floats f) {
  constexpr float kFactors[] = {-1.1514610310e-1f, 1.1676998740e-1f,  -1.2420140846e-1f,
                                1.4249322787e-1f,  -1.6668057665e-1f, 2.0000714765e-1f,
                                -2.4999993993e-1f, 3.3333331174e-1f};
  const Floats square = product(f, f);
  Floats high = all(7.0376836292e-2f);
  for (const float factor : kFactors) high = sum(product(high, f), all(factor));
  return difference(product(product(high, f), square), product(square, all(0.5f)));
}

// Where x is neither infinite nor NaN; those are their own logarithms.
inline Mask is_finite(Floats x) { return at_least(all(std::numeric_limits<float>::max()), x); }

// Products with constants in two parts, the first of few bits. REQUIRES of both: x is at least the
// smallest normal number, infinite or NaN.
inline Floats natural_log(Floats x) {
  const Parts parts = parts_of(x);
  const Floats small =
      difference(log_less_fraction(parts.fraction), product(parts.exponent, all(2.12194440e-4f)));
  const Floats log = sum(sum(parts.fraction, small), product(parts.exponent, all(0.693359375f)));
  return chosen(is_finite(x), log, x);
}
inline Floats log10_of(Floats x) {
  const Parts parts = parts_of(x);
  const Floats small = log_less_fraction(parts.fraction);
  Floats log = product(sum(parts.fraction, small), all(7.00731903251827651129e-4f));
  log = sum(log, product(small, all(0.43359375f)));
  log = sum(log, product(parts.fraction, all(0.43359375f)));
  log = sum(log, product(parts.exponent, all(2.48745663981195213739e-4f)));
  log = sum(log, product(parts.exponent, all(0.30078125f)));
  return chosen(is_finite(x), log, x);
}

// What becomes of a lane's value. No lambdas: those would not be compiled for the level. Of the two
// values compared the second stays where one is NaN, so what is a NaN stays one.
struct RootOf {
  Floats operator()(Floats x) const { return root(x); }
};
struct DecibelsOf {
  Floats multiplier, least, subtracted;
  Floats operator()(Floats x) const {
    return difference(product(log10_of(most_of(least, x)), multiplier), subtracted);
  }
};
struct LogarithmOf {
  Floats least;
  Floats operator()(Floats x) const { return natural_log(most_of(least, x)); }
};
struct Raised {
  Floats least, added, factor;
  Floats operator()(Floats x) const { return product(sum(most_of(least, x), added), factor); }
};

template <class Make>
void each_of_row(const float* in, int64_t count, float* out, const Make& make) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(out + i, make(load(in + i)));
  if (i == count) return;
  float rest[kLanes] = {};
  std::copy(in + i, in + count, rest);
  store(rest, make(load(rest)));
  std::copy_n(rest, count - i, out + i);
}

void roots(const float* in, int64_t count, float* out) { each_of_row(in, count, out, RootOf()); }
void decibels(const float* in, int64_t count, const Decibels& how, float* out) {
  each_of_row(in, count, out, DecibelsOf{all(how.multiplier), all(how.least), all(how.subtracted)});
}
void logarithms(const float* in, int64_t count, float least, float* out) {
  each_of_row(in, count, out, LogarithmOf{all(least)});
}

void raise_values(const float* in, int64_t count, float least, float added, float factor,
                  float* out) {
  each_of_row(in, count, out, Raised{all(least), all(added), all(factor)});
}

float largest(const float* in, int64_t count) {
  float rows[kLanes];
  std::fill_n(rows, kLanes, -std::numeric_limits<float>::infinity());
  Floats most = load(rows);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) most = most_of(load(in + i), most);
  store(rows, most);
  float all_of_them = rows[0];
  for (const float value : rows) all_of_them = value > all_of_them ? value : all_of_them;
  for (; i < count; ++i) all_of_them = in[i] > all_of_them ? in[i] : all_of_them;
  return all_of_them;
}

}  // namespace
}  // namespace headrace
