// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include "headrace/kernels/noise_rows.h"

#define HEADRACE_KERNEL "headrace/kernels/noise_rows.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {

void random_row(uint64_t key, uint32_t row, int count, uint32_t* out) {
  HEADRACE_BY_LEVEL(random_numbers)(key, row, count, out);
}

void normal_row(uint64_t key, uint32_t row, int count, float* out) {
  HEADRACE_BY_LEVEL(normal_numbers)(key, row, count, out);
}

void uniform_columns(uint64_t key, int width, int height, int64_t stride, float* out) {
  HEADRACE_BY_LEVEL(uniform_columns_in_lanes)(key, width, height, stride, out);
}

void salt_and_pepper_row(const uint8_t* in, const uint32_t* numbers, int count, int32_t white,
                         int32_t either, uint8_t* out) {
  HEADRACE_BY_LEVEL(salt_and_pepper)(in, numbers, count, white, either, out);
}

void add_noise_row(const uint8_t* in, const float* noise, int count, const ByteNoise& how,
                   uint8_t* out) {
  HEADRACE_BY_LEVEL(add_noise)(in, noise, count, how, out);
}

}  // namespace headrace

#else  // at each SIMD level

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

// Products and sums are not fused, so all SIMD levels give the same bits.

constexpr int kBlocks = kNoiseTile / 4;  // blocks of four numbers; a tile holds the first number of
                                         // each block, then the second ones, and so on

Ints Neg(Ints v) { return Sub(Set(0), v); }

struct NoiseWords {
  Ints of[4];
};

// Philox4x32-10 as in base/random.h, with the counters (block, row, 0, 0).
NoiseWords words_of(uint64_t key, Ints row, Ints block) {
  Ints c0 = block, c1 = row, c2 = Set(0), c3 = Set(0);
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  const Ints m0 = Set(static_cast<int>(0xD2511F53)), m1 = Set(static_cast<int>(0xCD9E8D57));
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    const WideProduct p0 = WideMul(c0, m0), p1 = WideMul(c2, m1);
    c0 = Xor(Xor(p1.high, c1), Set(static_cast<int>(k0)));
    c1 = p1.low;
    c2 = Xor(Xor(p0.high, c3), Set(static_cast<int>(k1)));
    c3 = p0.low;
  }
  return {{c0, c1, c2, c3}};
}

Floats polynomial(Floats x, Floats first) {
  (void)x;
  return first;
}
// The highest power first.
template <class... Rest>
Floats polynomial(Floats x, Floats first, float next, Rest... rest) {
  return polynomial(x, Add(Mul(first, x), Set(next)), rest...);
}

// ln(m / 2^24) of integers m from 1 to 2^24, using Cephes' polynomial.
Floats log_of_share(Floats m) {
  constexpr int kRootOfHalf = 0x3f3504f3;  // bits of a float
  const Ints above = Add(BitsOf(m), Set(-kRootOfHalf));
  const Floats exponent = ToFloats(Add(ShiftRight<23>(above), Set(-24)));
  const Floats f = FromBits(Add(And(above, Set(0x7fffff)), Set(kRootOfHalf)));
  const Floats z = Sub(f, Set(1.0f)), zz = Mul(z, z);
  const Floats high = polynomial(z, Set(7.0376836292e-2f), -1.1514610310e-1f, 1.1676998740e-1f,
                                 -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                                 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f);
  Floats small = Mul(Mul(high, z), zz);
  small = Sub(small, Mul(exponent, Set(2.12194440e-4f)));
  small = Sub(small, Mul(zz, Set(0.5f)));
  return Add(Add(z, small), Mul(exponent, Set(0.693359375f)));
}

// Two normal numbers from two words (Box & Muller): a radius, and an angle in a quarter of the
// circle that the upper bits rotate.
void store_normal(Ints of_radius, Ints of_angle, float* one, float* other) {
  const Floats share = ToFloats(Add(ShiftRight<8>(of_radius), Set(1)));
  const Floats radius = Sqrt(Mul(log_of_share(share), Set(-2.0f)));
  const Floats part = ToFloats(ShiftRight<6>(And(of_angle, Set(0x3fffffff))));
  const Floats angle = Mul(Sub(Mul(part, Set(0x1p-24f)), Set(0.5f)), Set(1.57079632679f));
  const Floats zz = Mul(angle, angle);
  const Floats sine_rest =
      polynomial(zz, Set(-1.9515295891e-4f), 8.3321608736e-3f, -1.6666654611e-1f);
  const Floats sine = Add(Mul(Mul(sine_rest, zz), angle), angle);
  const Floats cosine_rest =
      polynomial(zz, Set(2.443315711809948e-5f), -1.388731625493765e-3f, 4.166664568298827e-2f);
  const Floats cosine = Add(Sub(Mul(Mul(cosine_rest, zz), zz), Mul(zz, Set(0.5f))), Set(1.0f));
  // Rotates to the quarter: mirrored at the diagonal, and at the origin.
  const Ints swap = Add(Set(0), Neg(And(ShiftRight<30>(of_angle), Set(1))));
  const Ints sign = And(of_angle, Set(static_cast<int>(0x80000000)));
  const Ints exchange = And(Xor(BitsOf(sine), BitsOf(cosine)), swap);
  Store(one, Mul(radius, FromBits(Xor(Xor(BitsOf(cosine), exchange), sign))));
  Store(other, Mul(radius, FromBits(Xor(Xor(BitsOf(sine), exchange), sign))));
}

void random_numbers(uint64_t key, uint32_t row, int count, uint32_t* out) {
  const Ints in_row = Set(static_cast<int>(row));
  for (int tile = 0; tile * kNoiseTile < count; ++tile) {
    for (int lane = 0; lane < kBlocks; lane += kLanes) {
      const NoiseWords words = words_of(key, in_row, Add(Iota(), Set(tile * kBlocks + lane)));
      uint32_t* const to = out + tile * kNoiseTile + lane;
      for (int k = 0; k < 4; ++k) Store(to + k * kBlocks, words.of[k]);
    }
  }
}

void uniform_columns_in_lanes(uint64_t key, int width, int height, int64_t stride, float* out) {
  for (int block = 0; block * 4 < noise_room(height); ++block) {
    const int first = block / kBlocks * kNoiseTile + block % kBlocks;
    for (int x = 0; first < height && x < width; x += kLanes) {
      const NoiseWords words = words_of(key, Add(Iota(), Set(x)), Set(block));
      for (int k = 0; k < 4; ++k) {
        const int y = first + k * kBlocks;
        if (y >= height) break;
        const Floats share = Mul(ToFloats(ShiftRight<8>(words.of[k])), Set(0x1p-23f));
        Store(out + y * stride + x, Sub(share, Set(1.0f)));
      }
    }
  }
}

void normal_numbers(uint64_t key, uint32_t row, int count, float* out) {
  const Ints in_row = Set(static_cast<int>(row));
  for (int tile = 0; tile * kNoiseTile < count; ++tile) {
    for (int lane = 0; lane < kBlocks; lane += kLanes) {
      const NoiseWords words = words_of(key, in_row, Add(Iota(), Set(tile * kBlocks + lane)));
      float* const to = out + tile * kNoiseTile + lane;
      store_normal(words.of[0], words.of[1], to, to + kBlocks);
      store_normal(words.of[2], words.of[3], to + 2 * kBlocks, to + 3 * kBlocks);
    }
  }
}

void add_noise(const uint8_t* in, const float* noise, int count, const ByteNoise& how,
               uint8_t* out) {
  const Floats mean = Set(how.mean), sigma = Set(how.sigma);
  for (int i = 0; i < count; i += kLanes) {
    const Ints away = TruncToInts(Add(mean, Mul(Load(noise + i), sigma)));
    const Ints value = Add(LoadBytesAsInts(in + i), away);
    StoreAsBytes(out + i, how.clip ? ClampToBytes(value) : And(value, Set(255)));
  }
}

// All bits set where a < b, for numbers with a zero sign bit.
Ints where_below(Ints a, Ints b) { return Neg(ShiftRight<31>(Add(a, Neg(b)))); }

void salt_and_pepper(const uint8_t* in, const uint32_t* numbers, int count, int32_t white,
                     int32_t either, uint8_t* out) {
  for (int i = 0; i < count; i += kLanes) {
    const Ints number = ShiftRight<1>(Load(numbers + i));
    const Ints changes = where_below(number, Set(either));
    const Ints whitens = where_below(number, Set(white));
    const Ints value = LoadBytesAsInts(in + i);
    const Ints kept = Xor(value, And(value, changes));
    StoreAsBytes(out + i, Xor(kept, And(whitens, Set(255))));
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
