// SPDX-License-Identifier: Apache-2.0
// The passes of a transform (real_fft.h) in lanes, without fusing products and sums, so that all
// SIMD levels give the same bits. Included by frame_kernels.cc at each SIMD level, so it has no
// guard. Internal to kernels/.

namespace headrace::HEADRACE_LEVEL {
namespace {

struct Complex {
  Floats re, im;
};

inline Complex complex_at(const float* from) { return {Load(from), Load(from + kLanes)}; }
inline void put(float* to, Complex v) {
  Store(to, v.re);
  Store(to + kLanes, v.im);
}
inline Complex plus(Complex a, Complex b) { return {Add(a.re, b.re), Add(a.im, b.im)}; }
inline Complex minus(Complex a, Complex b) { return {Sub(a.re, b.re), Sub(a.im, b.im)}; }
inline Complex scaled(Complex a, float by) {
  const Floats factor = Set(by);
  return {Mul(a.re, factor), Mul(a.im, factor)};
}
// a - ib and a + ib.
inline Complex minus_i_times(Complex a, Complex b) { return {Add(a.re, b.im), Sub(a.im, b.re)}; }
inline Complex plus_i_times(Complex a, Complex b) { return {Sub(a.re, b.im), Add(a.im, b.re)}; }
inline Complex times(Complex a, const float* factor) {
  const Floats re = Set(factor[0]), im = Set(factor[1]);
  return {Sub(Mul(a.re, re), Mul(a.im, im)), Add(Mul(a.re, im), Mul(a.im, re))};
}

template <int radix>
struct Butterfly;

template <>
struct Butterfly<2> {
  static void apply(Complex (&v)[2]) {
    const Complex a = v[0];
    v[0] = plus(a, v[1]);
    v[1] = minus(a, v[1]);
  }
};

template <>
struct Butterfly<3> {
  static void apply(Complex (&v)[3]) {
    const Complex both = plus(v[1], v[2]);
    const Complex turned = scaled(minus(v[1], v[2]), 0.86602540378443864676f);
    const Complex middle = minus(v[0], scaled(both, 0.5f));
    v[0] = plus(v[0], both);
    v[1] = minus_i_times(middle, turned);
    v[2] = plus_i_times(middle, turned);
  }
};

template <>
struct Butterfly<4> {
  static void apply(Complex (&v)[4]) {
    const Complex even = plus(v[0], v[2]), even_less = minus(v[0], v[2]);
    const Complex odd = plus(v[1], v[3]), odd_less = minus(v[1], v[3]);
    v[0] = plus(even, odd);
    v[1] = minus_i_times(even_less, odd_less);
    v[2] = minus(even, odd);
    v[3] = plus_i_times(even_less, odd_less);
  }
};

template <>
struct Butterfly<5> {
  static void apply(Complex (&v)[5]) {
    // Cosine and sine of one and two fifths of a turn.
    constexpr float kCosine1 = 0.30901699437494742410f, kCosine2 = -0.80901699437494742410f;
    constexpr float kSine1 = 0.95105651629515357212f, kSine2 = 0.58778525229247312917f;
    const Complex near = plus(v[1], v[4]), near_less = minus(v[1], v[4]);
    const Complex far = plus(v[2], v[3]), far_less = minus(v[2], v[3]);
    const Complex first = plus(v[0], plus(scaled(near, kCosine1), scaled(far, kCosine2)));
    const Complex second = plus(v[0], plus(scaled(near, kCosine2), scaled(far, kCosine1)));
    const Complex first_turned = plus(scaled(near_less, kSine1), scaled(far_less, kSine2));
    const Complex second_turned = minus(scaled(near_less, kSine2), scaled(far_less, kSine1));
    v[0] = plus(v[0], plus(near, far));
    v[1] = minus_i_times(first, first_turned);
    v[2] = minus_i_times(second, second_turned);
    v[3] = plus_i_times(second, second_turned);
    v[4] = plus_i_times(first, first_turned);
  }
};

// Twiddles are 1 for p = 0, and for all p in the last pass.
template <int radix, bool twiddled>
inline void butterflies(const float* in, const float* factors, int64_t in_step, int64_t out_step,
                        int count, float* out) {
  for (int q = 0; q < count; ++q, in += 2 * kLanes, out += 2 * kLanes) {
    Complex v[radix];
#pragma GCC unroll 8
    for (int j = 0; j < radix; ++j) v[j] = complex_at(in + j * in_step);
    Butterfly<radix>::apply(v);
    put(out, v[0]);
#pragma GCC unroll 8
    for (int k = 1; k < radix; ++k) {
      put(out + k * out_step, twiddled ? times(v[k], factors + 2 * (k - 1)) : v[k]);
    }
  }
}

template <int radix>
void pass_of(const RealFft::Pass& pass, const float* factors, const float* in, float* out) {
  const int64_t step = int64_t{2} * kLanes * pass.stride, in_step = step * pass.rest;
  butterflies<radix, false>(in, nullptr, in_step, step, pass.stride, out);
  const float* twiddles = factors + pass.twiddles + 2 * (radix - 1);
  for (int p = 1; p < pass.rest; ++p, twiddles += 2 * (radix - 1)) {
    butterflies<radix, true>(in + p * step, twiddles, in_step, step, pass.stride,
                             out + p * radix * step);
  }
}

// Any odd radix, as sums over pairs of elements; overwrites `in`.
void general_pass(const RealFft::Pass& pass, const float* factors, float* in, float* out) {
  const int radix = pass.radix, half = (radix - 1) / 2;
  const int64_t step = int64_t{2} * kLanes * pass.stride, in_step = step * pass.rest;
  const float* const roots = factors + pass.roots;
  for (int p = 0; p < pass.rest; ++p) {
    const float* const twiddles = factors + pass.twiddles + size_t(p) * size_t(2 * (radix - 1));
    for (int q = 0; q < pass.stride; ++q) {
      float* const from = in + p * step + int64_t{2} * kLanes * q;
      float* const to = out + p * radix * step + int64_t{2} * kLanes * q;
      const Complex zero = complex_at(from);
      Complex whole = zero;
      for (int j = 1; j <= half; ++j) {
        float *const low = from + j * in_step, *const high = from + (radix - j) * in_step;
        const Complex a = complex_at(low), b = complex_at(high), both = plus(a, b);
        put(low, both);
        put(high, minus(a, b));
        whole = plus(whole, both);
      }
      put(to, whole);
      for (int k = 1; k <= half; ++k) {
        Complex middle = zero, turned = {Set(0.0f), Set(0.0f)};
        for (int j = 1, at = k; j <= half; ++j, at = (at + k) % radix) {
          const Complex both = complex_at(from + j * in_step);
          const Complex less = complex_at(from + (radix - j) * in_step);
          middle = plus(middle, scaled(both, roots[2 * at]));
          turned = plus(turned, scaled(less, roots[2 * at + 1]));
        }
        const int other = radix - k;
        put(to + k * step, times(minus_i_times(middle, turned), twiddles + 2 * (k - 1)));
        put(to + other * step, times(plus_i_times(middle, turned), twiddles + 2 * (other - 1)));
      }
    }
  }
}

// The square of its absolute value.
inline Floats power_of(Complex v) { return Add(Mul(v.re, v.re), Mul(v.im, v.im)); }

// Bins k and n / 2 - k of a packed frame, of elements k and n / 2 - k of its transform.
void unpack_powers(const RealFft& fft, const float* in, float* out) {
  const int whole = fft.complex_length;
  for (int k = 0; 2 * k <= whole; ++k) {
    const Complex low = complex_at(in + int64_t{2} * kLanes * k);
    const Complex high = complex_at(in + int64_t{2} * kLanes * ((whole - k) % whole));
    // Twice the transforms of the even samples and of the odd samples.
    const Complex even = {Add(low.re, high.re), Sub(low.im, high.im)};
    const Complex odd = {Sub(low.re, high.re), Add(low.im, high.im)};
    const Complex turned = times(odd, &fft.unpacking[size_t(2) * size_t(k)]);
    const Floats quarter = Set(0.25f);
    Store(out + int64_t{kLanes} * k, Mul(power_of(plus(even, turned)), quarter));
    Store(out + int64_t{kLanes} * (whole - k), Mul(power_of(minus(even, turned)), quarter));
  }
}

float* powers(const RealFft& fft, float* block, float* other) {
  if (!fft.packed()) {  // as complex numbers with imaginary part 0
    for (int j = 0; j < fft.length; ++j) {
      put(other + int64_t{2} * kLanes * j, {Load(block + int64_t{kLanes} * j), Set(0.0f)});
    }
    std::swap(block, other);
  }
  for (const RealFft::Pass& pass : fft.passes) {
    const float* const factors = fft.factors.data();
    switch (pass.radix) {
      case 2:
        pass_of<2>(pass, factors, block, other);
        break;
      case 3:
        pass_of<3>(pass, factors, block, other);
        break;
      case 4:
        pass_of<4>(pass, factors, block, other);
        break;
      case 5:
        pass_of<5>(pass, factors, block, other);
        break;
      default:
        general_pass(pass, factors, block, other);
    }
    std::swap(block, other);
  }
  if (fft.packed()) {
    unpack_powers(fft, block, other);
    return other;
  }
  for (int k = 0; k < fft.bins(); ++k) {
    Store(other + int64_t{kLanes} * k, power_of(complex_at(block + int64_t{2} * kLanes * k)));
  }
  return other;
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL
