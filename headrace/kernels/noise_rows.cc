// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/noise_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/float_lanes_scalar.h"

namespace headrace {
namespace {

struct WideProduct {
  Numbers high, low;
};
WideProduct wide_product(Numbers a, Numbers b) {
  const uint64_t whole = uint64_t{word(a)} * word(b);
  return {number(static_cast<uint32_t>(whole >> 32)), number(static_cast<uint32_t>(whole))};
}
Numbers load(const uint32_t* from) { return number(*from); }
void store(uint32_t* to, Numbers v) { *to = word(v); }
Numbers bits_of(Floats v) { return std::bit_cast<Numbers>(v); }
Floats with_bits(Numbers v) { return std::bit_cast<Floats>(v); }
Floats root(Floats v) { return std::sqrt(v); }

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/noise_rows_loops.h"

namespace headrace {
namespace {

const NoiseKernels& noise_kernels() {
  static const ByLevel<const NoiseKernels*> by_level{&kKernels, noise_kernels_avx2(),
                                                     noise_kernels_avx512(), noise_kernels_neon()};
  return *by_level.in_force();
}

}  // namespace

void random_row(uint64_t key, uint32_t row, int count, uint32_t* out) {
  noise_kernels().random(key, row, count, out);
}

void normal_row(uint64_t key, uint32_t row, int count, float* out) {
  noise_kernels().normal(key, row, count, out);
}

void uniform_columns(uint64_t key, int width, int height, int64_t stride, float* out) {
  noise_kernels().uniform_columns(key, width, height, stride, out);
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
