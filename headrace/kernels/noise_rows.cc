// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/noise_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

// Lanes of one number, for the loops below.
using Floats = float;
using Numbers = int32_t;
constexpr int kLanes = 1;

uint32_t word(Numbers v) { return static_cast<uint32_t>(v); }
Numbers number(uint32_t v) { return static_cast<Numbers>(v); }
Floats all(float v) { return v; }
Numbers all(int v) { return v; }
Numbers ascending() { return 0; }
Numbers sum(Numbers a, Numbers b) { return number(word(a) + word(b)); }
Numbers negated(Numbers v) { return number(0 - word(v)); }
struct WideProduct {
  Numbers high, low;
};
WideProduct wide_product(Numbers a, Numbers b) {
  const uint64_t whole = uint64_t{word(a)} * word(b);
  return {number(static_cast<uint32_t>(whole >> 32)), number(static_cast<uint32_t>(whole))};
}
Numbers differing(Numbers a, Numbers b) { return a ^ b; }
Numbers common(Numbers a, Numbers b) { return a & b; }
template <int bits>
Numbers shifted_down(Numbers v) {
  return number(word(v) >> bits);
}
Numbers bits_of(Floats v) { return std::bit_cast<Numbers>(v); }
Floats with_bits(Numbers v) { return std::bit_cast<Floats>(v); }
Floats floats_of(Numbers v) { return static_cast<Floats>(v); }
Floats sum(Floats a, Floats b) { return a + b; }
Floats difference(Floats a, Floats b) { return a - b; }
Floats product(Floats a, Floats b) { return a * b; }
Floats root(Floats v) { return std::sqrt(v); }
Numbers cut_off(Floats v) { return static_cast<Numbers>(v); }
Numbers to_bytes(Numbers v) { return std::clamp(v, 0, 255); }
Numbers numbers_at(const uint8_t* from) { return *from; }
Floats load(const float* from) { return *from; }
Numbers load(const uint32_t* from) { return number(*from); }
void store(float* to, Floats v) { *to = v; }
void store(uint32_t* to, Numbers v) { *to = word(v); }
void store_bytes(uint8_t* to, Numbers v) { *to = static_cast<uint8_t>(v); }

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/noise_rows_loops.h"

namespace headrace {
namespace {

const NoiseKernels& noise_kernels() {
  static const std::array<const NoiseKernels*, 3> by_level{&kKernels, noise_kernels_avx2(),
                                                           noise_kernels_avx512()};
  return *by_level[static_cast<size_t>(simd_level())];
}

}  // namespace

void random_row(uint64_t key, uint32_t row, int count, uint32_t* out) {
  noise_kernels().random(key, row, count, out);
}

void normal_row(uint64_t key, uint32_t row, int count, float* out) {
  noise_kernels().normal(key, row, count, out);
}

void sprinkle_row(const uint8_t* in, const uint32_t* numbers, int count, int32_t white,
                  int32_t either, uint8_t* out) {
  noise_kernels().sprinkle(in, numbers, count, white, either, out);
}

void add_noise_row(const uint8_t* in, const float* noise, int count, const ByteNoise& how,
                   uint8_t* out) {
  noise_kernels().add(in, noise, count, how, out);
}

}  // namespace headrace
