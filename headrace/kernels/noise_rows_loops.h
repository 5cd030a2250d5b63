// SPDX-License-Identifier: Apache-2.0
// The loops of noise_rows.cc in lanes. Included by noise_rows.cc with lanes of one number, and by
// each level's file after its own, between its target pragmas: no product is fused with a sum, so
// all give the same bits. Internal to kernels/.
#pragma once

#include "headrace/kernels/noise_rows_levels.h"

namespace headrace {
namespace {

constexpr int kBlocks = kNoiseTile / 4;  // of four numbers; a tile has the first of each, then the
                                         // second ones, and so on

Numbers negated(Numbers v) { return difference(all(0), v); }

struct NoiseWords {
  Numbers of[4];
};

// Philox4x32-10 as base/random.h has it, of the counters (block, row, 0, 0).
NoiseWords words_of(uint64_t key, Numbers row, Numbers block) {
  Numbers c0 = block, c1 = row, c2 = all(0), c3 = all(0);
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  const Numbers m0 = all(static_cast<int>(0xD2511F53)), m1 = all(static_cast<int>(0xCD9E8D57));
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    const WideProduct p0 = wide_product(c0, m0), p1 = wide_product(c2, m1);
    c0 = differing(differing(p1.high, c1), all(static_cast<int>(k0)));
    c1 = p1.low;
    c2 = differing(differing(p0.high, c3), all(static_cast<int>(k1)));
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
  return polynomial(x, sum(product(first, x), all(next)), rest...);
}

// ln(m / 2^24) of whole numbers m from 1 to 2^24, by Cephes' polynomial.
Floats log_of_share(Floats m) {
  constexpr int kRootOfHalf = 0x3f3504f3;  // as a float
  const Numbers above = sum(bits_of(m), all(-kRootOfHalf));
  const Floats exponent = floats_of(sum(shifted_down<23>(above), all(-24)));
  const Floats f = with_bits(sum(common(above, all(0x7fffff)), all(kRootOfHalf)));
  const Floats z = difference(f, all(1.0f)), zz = product(z, z);
  const Floats high = polynomial(z, all(7.0376836292e-2f), -1.1514610310e-1f, 1.1676998740e-1f,
                                 -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                                 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f);
  Floats small = product(product(high, z), zz);
  small = difference(small, product(exponent, all(2.12194440e-4f)));
  small = difference(small, product(zz, all(0.5f)));
  return sum(sum(z, small), product(exponent, all(0.693359375f)));
}

// Two normal numbers of two words (Box & Muller): a radius, and an angle in a quarter of the circle
// that the upper bits turn.
void store_normal(Numbers of_radius, Numbers of_angle, float* one, float* other) {
  const Floats share = floats_of(sum(shifted_down<8>(of_radius), all(1)));
  const Floats radius = root(product(log_of_share(share), all(-2.0f)));
  const Floats part = floats_of(shifted_down<6>(common(of_angle, all(0x3fffffff))));
  const Floats angle =
      product(difference(product(part, all(0x1p-24f)), all(0.5f)), all(1.57079632679f));
  const Floats zz = product(angle, angle);
  const Floats sine_rest =
      polynomial(zz, all(-1.9515295891e-4f), 8.3321608736e-3f, -1.6666654611e-1f);
  const Floats sine = sum(product(product(sine_rest, zz), angle), angle);
  const Floats cosine_rest =
      polynomial(zz, all(2.443315711809948e-5f), -1.388731625493765e-3f, 4.166664568298827e-2f);
  const Floats cosine =
      sum(difference(product(product(cosine_rest, zz), zz), product(zz, all(0.5f))), all(1.0f));
  // To which quarter: mirrored at the diagonal, and at the origin.
  const Numbers swap = sum(all(0), negated(common(shifted_down<30>(of_angle), all(1))));
  const Numbers sign = common(of_angle, all(static_cast<int>(0x80000000)));
  const Numbers exchange = common(differing(bits_of(sine), bits_of(cosine)), swap);
  store(one, product(radius, with_bits(differing(differing(bits_of(cosine), exchange), sign))));
  store(other, product(radius, with_bits(differing(differing(bits_of(sine), exchange), sign))));
}

void random_numbers(uint64_t key, uint32_t row, int count, uint32_t* out) {
  const Numbers in_row = all(static_cast<int>(row));
  for (int tile = 0; tile * kNoiseTile < count; ++tile) {
    for (int lane = 0; lane < kBlocks; lane += kLanes) {
      const NoiseWords words =
          words_of(key, in_row, sum(lane_numbers(), all(tile * kBlocks + lane)));
      uint32_t* const to = out + tile * kNoiseTile + lane;
      for (int k = 0; k < 4; ++k) store(to + k * kBlocks, words.of[k]);
    }
  }
}

void uniform_columns_in_lanes(uint64_t key, int width, int height, int64_t stride, float* out) {
  for (int block = 0; block * 4 < noise_room(height); ++block) {
    const int first = block / kBlocks * kNoiseTile + block % kBlocks;
    for (int x = 0; first < height && x < width; x += kLanes) {
      const NoiseWords words = words_of(key, sum(lane_numbers(), all(x)), all(block));
      for (int k = 0; k < 4; ++k) {
        const int y = first + k * kBlocks;
        if (y >= height) break;
        const Floats share = product(floats_of(shifted_down<8>(words.of[k])), all(0x1p-23f));
        store(out + y * stride + x, difference(share, all(1.0f)));
      }
    }
  }
}

void normal_numbers(uint64_t key, uint32_t row, int count, float* out) {
  const Numbers in_row = all(static_cast<int>(row));
  for (int tile = 0; tile * kNoiseTile < count; ++tile) {
    for (int lane = 0; lane < kBlocks; lane += kLanes) {
      const NoiseWords words =
          words_of(key, in_row, sum(lane_numbers(), all(tile * kBlocks + lane)));
      float* const to = out + tile * kNoiseTile + lane;
      store_normal(words.of[0], words.of[1], to, to + kBlocks);
      store_normal(words.of[2], words.of[3], to + 2 * kBlocks, to + 3 * kBlocks);
    }
  }
}

void add_noise(const uint8_t* in, const float* noise, int count, const ByteNoise& how,
               uint8_t* out) {
  const Floats mean = all(how.mean), sigma = all(how.sigma);
  for (int i = 0; i < count; i += kLanes) {
    const Numbers away = cut_off(sum(mean, product(load(noise + i), sigma)));
    const Numbers value = sum(numbers_at(in + i), away);
    store_bytes(out + i, how.clip ? to_bytes(value) : common(value, all(255)));
  }
}

// All bits where a < b, of numbers without a sign bit.
Numbers where_below(Numbers a, Numbers b) { return negated(shifted_down<31>(sum(a, negated(b)))); }

void sprinkle(const uint8_t* in, const uint32_t* numbers, int count, int32_t white, int32_t either,
              uint8_t* out) {
  for (int i = 0; i < count; i += kLanes) {
    const Numbers number = shifted_down<1>(load(numbers + i));
    const Numbers changes = where_below(number, all(either));
    const Numbers whitens = where_below(number, all(white));
    const Numbers value = numbers_at(in + i);
    const Numbers kept = differing(value, common(value, changes));
    store_bytes(out + i, differing(kept, common(whitens, all(255))));
  }
}

constexpr NoiseKernels kKernels{random_numbers, normal_numbers, uniform_columns_in_lanes, sprinkle,
                                add_noise};

}  // namespace
}  // namespace headrace
