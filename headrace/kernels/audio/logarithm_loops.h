// SPDX-License-Identifier: Apache-2.0
// Logarithms, roots and bounds of float32 rows, in lanes. Included by frame_kernels.cc at each SIMD
// level, so it has no guard. Internal to kernels/.

namespace headrace::HEADRACE_LEVEL {
namespace {

// x = (1 + fraction) * 2^exponent, with 1 + fraction in [sqrt(0.5), sqrt(2)).
struct Parts {
  Floats fraction, exponent;
};
inline Parts parts_of(Floats x) {
  constexpr int kRootOfHalf = 0x3f3504f3;  // bits of float(sqrt(0.5))
  const Ints above = Sub(BitsOf(x), Set(kRootOfHalf));
  const Ints mantissa = Add(And(above, Set(0x7fffff)), Set(kRootOfHalf));
  return {Sub(FromBits(mantissa), Set(1.0f)), ToFloats(ShiftRightSigned<23>(above))};
}

// ln(1 + f) - f, using Cephes' polynomial.
inline Floats log_less_fraction(Floats f) {
  constexpr float kFactors[] = {-1.1514610310e-1f, 1.1676998740e-1f,  -1.2420140846e-1f,
                                1.4249322787e-1f,  -1.6668057665e-1f, 2.0000714765e-1f,
                                -2.4999993993e-1f, 3.3333331174e-1f};
  const Floats square = Mul(f, f);
  Floats high = Set(7.0376836292e-2f);
  for (const float factor : kFactors) high = Add(Mul(high, f), Set(factor));
  return Sub(Mul(Mul(high, f), square), Mul(square, Set(0.5f)));
}

// True where x is finite. Infinity and NaN are their own logarithms.
inline Mask is_finite(Floats x) { return Ge(Set(std::numeric_limits<float>::max()), x); }

// Products with constants split in two parts, the first of few bits. REQUIRES for both: x is at
// least the smallest normal number, infinite or NaN.
inline Floats natural_log(Floats x) {
  const Parts parts = parts_of(x);
  const Floats small =
      Sub(log_less_fraction(parts.fraction), Mul(parts.exponent, Set(2.12194440e-4f)));
  const Floats log = Add(Add(parts.fraction, small), Mul(parts.exponent, Set(0.693359375f)));
  return IfThenElse(is_finite(x), log, x);
}
inline Floats log10_of(Floats x) {
  const Parts parts = parts_of(x);
  const Floats small = log_less_fraction(parts.fraction);
  Floats log = Mul(Add(parts.fraction, small), Set(7.00731903251827651129e-4f));
  log = Add(log, Mul(small, Set(0.43359375f)));
  log = Add(log, Mul(parts.fraction, Set(0.43359375f)));
  log = Add(log, Mul(parts.exponent, Set(2.48745663981195213739e-4f)));
  log = Add(log, Mul(parts.exponent, Set(0.30078125f)));
  return IfThenElse(is_finite(x), log, x);
}

// Maps a lane's value. Not lambdas: those would not be compiled for the SIMD level. Comparisons
// return the second operand if one is NaN, so NaN stays NaN.
struct SquareRoots {
  Floats operator()(Floats x) const { return Sqrt(x); }
};
struct ToDecibels {
  Floats multiplier, least, subtracted;
  Floats operator()(Floats x) const {
    return Sub(Mul(log10_of(Max(least, x)), multiplier), subtracted);
  }
};
struct ToLogarithms {
  Floats least;
  Floats operator()(Floats x) const { return natural_log(Max(least, x)); }
};
struct Raised {
  Floats least, added, factor;
  Floats operator()(Floats x) const { return Mul(Add(Max(least, x), added), factor); }
};

template <class Make>
void each_of_row(const float* in, int64_t count, float* out, const Make& make) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) Store(out + i, make(Load(in + i)));
  if (i == count) return;
  float rest[kLanes] = {};
  std::copy(in + i, in + count, rest);
  Store(rest, make(Load(rest)));
  std::copy_n(rest, count - i, out + i);
}

void roots(const float* in, int64_t count, float* out) {
  each_of_row(in, count, out, SquareRoots());
}
void decibels(const float* in, int64_t count, const Decibels& how, float* out) {
  each_of_row(in, count, out, ToDecibels{Set(how.multiplier), Set(how.least), Set(how.subtracted)});
}
void logarithms(const float* in, int64_t count, float least, float* out) {
  each_of_row(in, count, out, ToLogarithms{Set(least)});
}

void raise_values(const float* in, int64_t count, float least, float added, float factor,
                  float* out) {
  each_of_row(in, count, out, Raised{Set(least), Set(added), Set(factor)});
}

float largest(const float* in, int64_t count) {
  float rows[kLanes];
  std::fill_n(rows, kLanes, -std::numeric_limits<float>::infinity());
  Floats most = Load(rows);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) most = Max(Load(in + i), most);
  Store(rows, most);
  float all_of_them = rows[0];
  for (const float value : rows) all_of_them = value > all_of_them ? value : all_of_them;
  for (; i < count; ++i) all_of_them = in[i] > all_of_them ? in[i] : all_of_them;
  return all_of_them;
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL
